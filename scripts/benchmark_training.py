"""One TD-LSTM evaluation through `fiesta-select`'s own worker, beside the same model and epochs in a bare PyTorch loop.

Both run in fresh processes from the same preloaded fork server, in turn, one at a time and on one thread. Prints the
ratio of whole evaluations, the fixed overhead of ours (everything but the epochs) and where the time goes.

    python scripts/benchmark_training.py --data DIRECTORY --vectors vectors.50d.txt.gz
"""

import argparse
import copy
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Dict, List, Tuple

from rich.console import Console
from rich.table import Table

from fiesta_allennlp.records import Request
from fiesta_allennlp.run_directory import RunDirectory

DIM = 50
BATCH_SIZE = 32
REQUEST = Request("tdlstm_50", 0, split_seed=1, random_seed=2, numpy_seed=3, pytorch_seed=4)


@dataclass(frozen=True)
class Timing:
    """Seconds of one evaluation: from the request to the score, and of the epochs alone."""

    total: float
    epochs: float
    score: float

    @property
    def fixed(self) -> float:
        return self.total - self.epochs


def ours(
    config: Dict[str, Any], vectors: Dict[str, str], run: RunDirectory, number: int
) -> Tuple[Timing, Dict[str, float]]:
    """One evaluation through the executor, as a selection makes it."""
    from fiesta_allennlp.evaluators.allennlp_training import AllenNLPTraining
    from fiesta_allennlp.executors.processes import ProcessExecutor

    evaluator = AllenNLPTraining({REQUEST.candidate: config}, "macro_f1", "sentence_id", {REQUEST.candidate: vectors})
    executor = ProcessExecutor(run)
    start = time.monotonic()
    executor.submit(evaluator, REQUEST)
    outcome = next(executor.completed())
    total = time.monotonic() - start
    score = getattr(outcome, "score", None)
    if score is None:
        raise SystemExit(f"the evaluation failed: {outcome}")
    log = run.evaluation_log(REQUEST.name).read_text(encoding="utf-8")
    epochs = _duration(log)
    return Timing(total, epochs, score), {
        "process start and end": total - outcome.seconds,
        "the rest": outcome.seconds - epochs,
    }


def _duration(log: str) -> float:
    """`training_duration` of AllenNLP's metrics, which is a string such as 0:00:09.123456."""
    text = log.split('"training_duration": "')[1].split('"')[0]
    hours, minutes, seconds = text.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds)).total_seconds()


def bare(config: Dict[str, Any], vectors: str, log: Path) -> Timing:
    """The same model on the same split in a bare loop, in a process of its own."""
    from fiesta_allennlp.executors.processes import run_apart
    from fiesta_allennlp.executors.worker import WorkerSettings

    start = time.monotonic()
    results = run_apart(bare_loop, {"bare": (config, vectors)}, logs={"bare": log}, settings=WorkerSettings())
    total = time.monotonic() - start
    if isinstance(results["bare"], BaseException):
        raise results["bare"]
    epochs, score = results["bare"]
    return Timing(total, epochs, score)


def bare_loop(config: Dict[str, Any], vectors: str) -> Tuple[float, float]:
    """Reads, trains for as many epochs, keeps the best epoch by validation accuracy and scores it on the test part.

    Returns the seconds of the epochs and the macro-F1.
    """
    import numpy as np
    import torch
    from sklearn.metrics import f1_score

    from fiesta_allennlp.dataset_readers.semeval_xml import read_sentences
    from fiesta_allennlp.dataset_readers.word_tokenizer import WordTokenizer
    from fiesta_allennlp.splitters import group_targets, split_pool

    torch.manual_seed(REQUEST.pytorch_seed)
    rng = np.random.default_rng(REQUEST.numpy_seed)
    tokenizer = WordTokenizer()
    labels = {"positive": 0, "negative": 1, "neutral": 2}
    rows: List[Tuple[List[str], List[str], int]] = []
    groups, sizes = [], {}
    for part in ("train", "test"):
        before = len(rows)
        for sentence in read_sentences(config[f"{part}_data_path"]):
            for term in sentence.terms:
                if term.polarity in labels:
                    left = [t.text for t in tokenizer.tokenize(sentence.text[: term.start].lower())]
                    right = [t.text for t in tokenizer.tokenize(sentence.text[term.end :].lower())]
                    rows.append((left, right[::-1], labels[term.polarity]))
                    groups.append(sentence.sentence_id)
        sizes[part] = len(rows) - before
    split = split_pool(groups, group_targets(sizes), seed=REQUEST.split_seed)
    words: Dict[str, int] = {}
    for left, right, _ in rows:
        for word in left + right:
            words.setdefault(word, len(words) + 1)
    matrix = torch.randn(len(words) + 1, DIM) * 0.3
    with open(vectors, encoding="utf-8") as file:
        for line in file:
            word, *numbers = line.rstrip().split(" ")
            if word in words:
                matrix[words[word]] = torch.tensor([float(n) for n in numbers])
    coded = [([words[w] for w in left], [words[w] for w in right], label) for left, right, label in rows]

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding.from_pretrained(matrix, freeze=False)
            self.lstms = torch.nn.ModuleList([torch.nn.LSTM(DIM, DIM, batch_first=True) for _ in range(2)])
            self.out = torch.nn.Linear(2 * DIM, 3)

        def forward(self, sides: List[Tuple[Any, Any]]) -> Any:
            last = []
            for (ids, lengths), lstm in zip(sides, self.lstms, strict=True):
                states = lstm(self.embed(ids))[0]
                ends = states[torch.arange(len(ids)), (lengths - 1).clamp(min=0)]
                last.append(ends * (lengths > 0).unsqueeze(-1))
            return self.out(torch.cat(last, dim=-1))

    def batches(indices: Any, shuffle: bool) -> List[Tuple[List[Tuple[Any, Any]], Any]]:
        order = sorted(indices, key=lambda i: len(coded[i][0]) * rng.uniform(0.9, 1.1))
        chunks = [order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)]
        if shuffle:
            rng.shuffle(chunks)
        made = []
        for chunk in chunks:
            sides = []
            for side in (0, 1):
                texts = [coded[i][side] for i in chunk]
                width = max(1, max(map(len, texts)))
                ids = torch.tensor([text + [0] * (width - len(text)) for text in texts])
                sides.append((ids, torch.tensor([len(text) for text in texts])))
            made.append((sides, torch.tensor([coded[i][2] for i in chunk])))
        return made

    def predict(indices: Any) -> Tuple[Any, Any]:
        net.eval()
        with torch.no_grad():
            pairs = [(net(sides).argmax(-1), gold) for sides, gold in batches(indices, False)]
        return torch.cat([p for p, _ in pairs]), torch.cat([g for _, g in pairs])

    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    best, best_state = -1.0, net.state_dict()
    start = time.monotonic()
    for _ in range(config["trainer"]["num_epochs"]):
        net.train()
        for sides, gold in batches(split.train, True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(sides), gold).backward()
            optimizer.step()
        predicted, gold = predict(split.validation)
        accuracy = (predicted == gold).float().mean().item()
        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(net.state_dict())
    epochs = time.monotonic() - start
    net.load_state_dict(best_state)
    predicted, gold = predict(split.test)
    return epochs, float(f1_score(gold.numpy(), predicted.numpy(), average="macro"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="directory of the SemEval-2014 Restaurants files")
    parser.add_argument("--vectors", required=True, help="50-dimensional word vectors in GloVe's format")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    os.environ.update(FIESTA_DATA=str(Path(args.data).resolve()), FIESTA_VECTORS=str(Path(args.vectors).resolve()))
    os.environ["OMP_NUM_THREADS"] = "1"

    import fiesta_allennlp.plugin  # noqa: F401
    from fiesta_allennlp.evaluators.config import load_config
    from fiesta_allennlp.evaluators.preparation import prepare_candidate

    epochs = f'{{"trainer.num_epochs": {args.epochs}, "trainer.patience": null}}'
    config = load_config(Path("training_configs/tdsa/tdlstm_50.jsonnet"), epochs)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as scratch:
        run = RunDirectory(Path(scratch))
        vectors = dict(prepare_candidate(config, group_by=None, vectors_directory=run.vectors).vectors)
        (filtered,) = vectors.values()
        bare(config, filtered, run.root / "warm.log")  # starts the fork server
        pairs, shares = [], []
        for number in range(args.repetitions):
            mine, share = ours(config, vectors, run, number)
            pairs.append((mine, bare(config, filtered, run.root / f"bare{number}.log")))
            shares.append(share)
    report(pairs, shares, args.epochs, console)


def report(pairs: List[Tuple[Timing, Timing]], shares: List[Dict[str, float]], epochs: int, console: Console) -> None:
    table = Table(title=f"TD-LSTM, {DIM} dimensions, {epochs} epochs; medians of {len(pairs)} runs of each, in seconds")
    for column in ("", "whole evaluation", "epochs", "everything else", "macro-F1"):
        table.add_column(column, justify="right")
    for name, timings in (("fiesta_allennlp", [p[0] for p in pairs]), ("bare PyTorch", [p[1] for p in pairs])):
        middle = [
            statistics.median(getattr(t, field) for t in timings) for field in ("total", "epochs", "fixed", "score")
        ]
        table.add_row(name, *(f"{value:.2f}" for value in middle[:3]), f"{middle[3]:.3f}")
    console.print(table)
    ratio = statistics.median(mine.total / rival.total for mine, rival in pairs)
    fixed = statistics.median(mine.fixed for mine, _ in pairs)
    console.print(
        f"whole-evaluation ratio {ratio:.2f} (at most 1.3 wanted); fixed overhead {fixed:.2f} s (at most 2 wanted)"
    )
    where = {name: statistics.median(share[name] for share in shares) for name in shares[0]}
    console.print("of the fixed overhead: " + ", ".join(f"{name} {value:.2f} s" for name, value in where.items()))


if __name__ == "__main__":
    main()
