"""One TD-LSTM evaluation through `fiesta-select`'s own worker, beside the same model and epochs in a bare PyTorch loop.

Both run in fresh processes from the same preloaded fork server, in turn, one at a time and on one thread. Prints the
ratio of whole evaluations, the fixed overhead of ours (everything but the epochs), and by a profile of one evaluation
where the time goes.

    python scripts/benchmarks/training.py --data DIRECTORY --vectors vectors.50d.txt.gz
"""

import copy
import cProfile
import json
import os
import pstats
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import torch
from common import make_parser, print_table, show
from selections import prepared_trainings
from sklearn.metrics import f1_score

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.splits import Split, split_pool, target_sizes
from fiesta_allennlp.executors.processes import ProcessExecutor, run_in_processes
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.models.tdsa.semeval_tdsa import WordTokenizer, read_sentences
from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPRun

DIM = 50
BATCH_SIZE = 32
PACKAGES = ("fiesta_allennlp.plugin",)
"""What the fork server of both has loaded. With other packages, it would start again."""

LABELS = {"positive": 0, "negative": 1, "neutral": 2}
CONFIG = Path("training_configs/tdsa/tdlstm_50.jsonnet")
HEADINGS = ("", "whole evaluation", "epochs", "process", "data, model, test", "macro-F1")
REQUEST = Request(CONFIG.stem, 0, split_seed=1, random_seed=2, numpy_seed=3, pytorch_seed=4)

Sides = List[Tuple[torch.Tensor, torch.Tensor]]
"""For the left and the right context: word ids of shape `(batch_size, num_words)`, and lengths."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one evaluation: from the request to the score, of the epochs, and of the process around the work."""

    total: float
    epochs: float
    process: float
    score: float

    @property
    def fixed(self) -> float:
        return self.total - self.epochs

    def cells(self) -> List[float]:
        """Whole evaluation, epochs, process, and all else."""
        return [self.total, self.epochs, self.process, self.fixed - self.process]


def ours(evaluator: AllenNLPRun, run: RunDirectory) -> Timing:
    """One evaluation through the executor, as a selection makes it."""
    executor = ProcessExecutor(run, packages=PACKAGES)
    start = time.monotonic()
    executor.submit(evaluator, REQUEST)
    outcome = next(executor.completed())
    total = time.monotonic() - start
    if not isinstance(outcome, Evaluation):
        raise SystemExit(f"the evaluation failed: {outcome.error}")
    metrics = json.loads((run.evaluation(REQUEST.name) / "metrics.json").read_text(encoding="utf-8"))
    hours, minutes, seconds = map(float, metrics["training_duration"].split(":"))
    return Timing(total, 3600 * hours + 60 * minutes + seconds, total - outcome.seconds, outcome.score)


def bare(config: Mapping[str, Any], vectors: str, log: Path) -> Timing:
    """The same model on the same split in a bare loop, in a process of its own."""
    start = time.monotonic()
    work = {"bare": (config, vectors)}
    (result,) = run_in_processes(
        bare_training, work, logs={"bare": log}, settings=WorkerSettings(packages=PACKAGES)
    ).values()
    total = time.monotonic() - start
    if isinstance(result, BaseException):
        raise result
    return Timing(total, result.epochs, total - result.total, result.score)


@dataclass(frozen=True)
class Data:
    """Word ids of left and right contexts (the right one reversed), labels, the split, and the word vectors."""

    contexts: List[Tuple[List[int], List[int]]]
    labels: List[int]
    split: Split
    matrix: torch.Tensor


def read_data(config: Mapping[str, Any], vectors: str) -> Data:
    """Tokens as our reader makes them; rows of the filtered vectors for the words that have one."""
    tokenizer = WordTokenizer()
    words: Dict[str, int] = {}
    sizes: Dict[str, int] = {}
    contexts: List[Tuple[List[int], List[int]]] = []
    labels: List[int] = []
    groups: List[str] = []

    def code(text: str) -> List[int]:
        return [words.setdefault(str(token), len(words) + 1) for token in tokenizer.tokenize(text.lower())]

    for part in ("train", "test"):
        before = len(labels)
        for sentence in read_sentences(str(config[f"{part}_data_path"])):
            text = str(sentence.text)
            for term in sentence.terms:
                if term.polarity in LABELS:
                    contexts.append((code(text[: term.start]), code(text[term.end :])[::-1]))
                    labels.append(LABELS[str(term.polarity)])
                    groups.append(sentence.sentence_id)
        sizes[part] = len(labels) - before
    matrix = torch.randn(len(words) + 1, DIM) * 0.3
    with open(vectors, encoding="utf-8") as rows:
        for row in rows:
            word, *numbers = row.rstrip().split(" ")
            if word in words:
                matrix[words[word]] = torch.from_numpy(np.array(numbers, dtype=np.float32))
    return Data(contexts, labels, split_pool(groups, target_sizes(sizes), seed=REQUEST.split_seed), matrix)


class Net(torch.nn.Module):
    """TD-LSTM without the target's words."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding.from_pretrained(matrix, freeze=False)
        self.lstms = torch.nn.ModuleList([torch.nn.LSTM(DIM, DIM, batch_first=True) for _ in range(2)])
        self.out = torch.nn.Linear(2 * DIM, len(LABELS))

    def forward(self, sides: Sides) -> torch.Tensor:
        last = []
        for (ids, lengths), lstm in zip(sides, self.lstms, strict=True):
            states = lstm(self.embed(ids))[0]
            ends = states[torch.arange(len(ids)), (lengths - 1).clamp(min=0)]
            last.append(ends * (lengths > 0).unsqueeze(-1))
        return self.out(torch.cat(last, dim=-1))


def batches(data: Data, indices: Sequence[int], rng: np.random.Generator) -> List[Tuple[Sides, torch.Tensor]]:
    """Batches in random order, as the config makes them."""
    order = rng.permutation(np.array(indices))
    made = []
    for chunk in (order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)):
        sides = []
        for side in (0, 1):
            texts = [data.contexts[i][side] for i in chunk]
            width = max(1, max(map(len, texts)))
            ids = torch.tensor([text + [0] * (width - len(text)) for text in texts])
            sides.append((ids, torch.tensor([len(text) for text in texts])))
        made.append((sides, torch.tensor([data.labels[i] for i in chunk])))
    return made


def predict(
    net: Net, data: Data, indices: Sequence[int], rng: np.random.Generator
) -> Tuple[torch.Tensor, torch.Tensor]:
    net.eval()
    with torch.no_grad():
        pairs = [(net(sides).argmax(-1), gold) for sides, gold in batches(data, indices, rng)]
    return torch.cat([p for p, _ in pairs]), torch.cat([g for _, g in pairs])


def bare_training(config: Mapping[str, Any], vectors: str) -> Timing:
    """Train for as many epochs, keep the best by validation accuracy, score it on the test part: macro-F1. The process
    around it is not in the seconds."""
    begin = time.monotonic()
    torch.manual_seed(REQUEST.pytorch_seed)
    rng = np.random.default_rng(REQUEST.numpy_seed)
    data = read_data(config, vectors)
    net = Net(data.matrix)
    optimizer = torch.optim.Adam(net.parameters())
    best, best_state = -1.0, net.state_dict()
    start = time.monotonic()
    for _ in range(config["trainer"]["num_epochs"]):
        net.train()
        for sides, gold in batches(data, data.split.train, rng):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(sides), gold).backward()
            optimizer.step()
        predicted, gold = predict(net, data, data.split.validation, rng)
        accuracy = (predicted == gold).float().mean().item()
        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(net.state_dict())
    epochs = time.monotonic() - start
    net.load_state_dict(best_state)
    predicted, gold = predict(net, data, data.split.test, rng)
    score = float(f1_score(gold.numpy(), predicted.numpy(), average="macro"))
    return Timing(time.monotonic() - begin, epochs, 0.0, score)


def report(pairs: Sequence[Tuple[Timing, Timing]], num_epochs: int) -> None:
    title = f"TD-LSTM, {DIM} dimensions, {num_epochs} epochs; medians of {len(pairs)} runs of each, in seconds"
    rows = []
    for name, timings in zip(("fiesta_allennlp", "bare PyTorch"), zip(*pairs, strict=True), strict=True):
        medians = map(statistics.median, zip(*(timing.cells() for timing in timings), strict=True))
        score = statistics.median(timing.score for timing in timings)
        rows.append([name, *(f"{median:.2f}" for median in medians), f"{score:.3f}"])
    print_table(HEADINGS, rows, title=title)
    ratio = statistics.median(mine.total / rival.total for mine, rival in pairs)
    fixed = statistics.median(mine.fixed for mine, _ in pairs)
    show(f"\nwhole-evaluation ratio {ratio:.2f} (wanted: at most 1.3)")
    show(f"fixed overhead of an evaluation {fixed:.2f} s (wanted: at most 2)")


def profiled(evaluator: AllenNLPRun, directory: Path) -> Dict[str, float]:
    """Seconds of the parts of one evaluation in this process. A profile makes Python's share larger than it is."""
    profile = cProfile.Profile()
    profile.runcall(evaluator.evaluate, REQUEST, directory)
    functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]

    def seconds(*places: str) -> float:
        """The seconds of functions, with all that they call; each is a part of its file's path and its name."""
        chosen = [tuple(place.split(":")) for place in places]
        rows = functions.items()
        return sum(row[3] for (file, _, name), row in rows if any(p in file and n == name for p, n in chosen))

    metrics = seconds("fbeta_measure.py:__call__", "categorical_accuracy.py:__call__", "training/util.py:get_metrics")
    signatures = seconds("inspect.py:signature")
    parts = {
        "forward pass and loss": seconds("tdsa/models.py:forward")
        - seconds("fbeta_measure.py:__call__", "categorical_accuracy.py:__call__")
        - signatures,
        "gradients": seconds("torch/_tensor.py:backward"),
        "step of the optimizer": seconds("optim/optimizer.py:wrapper"),
        "batches": seconds("multiprocess_data_loader.py:__iter__"),
        "AllenNLP: metrics of each batch": metrics,
        "AllenNLP: signature of each embedder, at each call": signatures,
        "data, vocabulary, model": seconds("allennlp/evaluator.py:built"),
    }
    whole = seconds("candidate_run.py:evaluate")
    return {**parts, "rest, most of it AllenNLP's trainer": whole - sum(parts.values()), "one evaluation": whole}


def main() -> None:
    parser = make_parser(__doc__, repetitions=5)
    parser.add_argument("--data", required=True, help="directory of the SemEval-2014 Restaurants files")
    parser.add_argument("--vectors", required=True, help="50-dimensional word vectors in GloVe's format")
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    os.environ.update(FIESTA_DATA=str(Path(args.data).resolve()), FIESTA_VECTORS=str(Path(args.vectors).resolve()))
    overrides = json.dumps({"trainer.num_epochs": args.epochs, "trainer.patience": None})
    with tempfile.TemporaryDirectory() as scratch:
        run = RunDirectory(Path(scratch))
        evaluator = prepared_trainings([CONFIG], run.vectors, overrides=overrides).runs[CONFIG.stem]
        assert isinstance(evaluator, AllenNLPRun)
        config, (filtered,) = evaluator.config, evaluator.vectors.values()
        bare(config, filtered, run.root / "warm.log")  # starts the fork server
        pairs = [(ours(evaluator, run), bare(config, filtered, run.root / "bare.log")) for _ in range(args.repetitions)]
        parts = profiled(evaluator, run.root / "profiled")
    report(pairs, args.epochs)
    whole = parts["one evaluation"]
    rows = [[name, f"{seconds:.2f}", f"{seconds / whole:.0%}"] for name, seconds in parts.items()]
    print_table(("", "seconds", "share"), rows, title="A profile of one evaluation")


if __name__ == "__main__":
    main()
