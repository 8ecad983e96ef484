"""Epochs per second of TD-LSTM, ATAE-LSTM and IAN, beside the same models in a bare PyTorch loop.

The bare loop is what public reimplementations of these models do: PyTorch's own `DataLoader` over padded texts,
shuffled batches of any lengths, packed sequences (`bare_models.py`). Both have the same split, words, sizes, batches,
dropout and optimizer, run in fresh processes from the same preloaded fork server, in turn, and on one thread. An epoch
is one pass over the training part and one over the validation part; reading the data does not count. The accuracies on
the validation part after the last epoch tell that both learn.

    FIESTA_DATA=DIRECTORY FIESTA_VECTORS='vectors.%dd.txt.gz' python scripts/benchmark_epochs.py --epochs 3

Seconds of the clock tell on a machine that is otherwise idle, seconds of the processor on any.
"""

import argparse
import gc
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.data import DatasetReader, Instance, Vocabulary
from bare_models import MODELS, Classifier
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.executors.processes import run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.records import Request
from fiesta_allennlp.trainings.config import evaluation_config, load_config
from fiesta_allennlp.trainings.preparation import prepare_candidate

CANDIDATES = [f"training_configs/tdsa/{name}.jsonnet" for name in ("tdlstm", "atae", "ian")]
PADDINGS = ("longest", "batch")


@dataclass(frozen=True)
class Timing:
    """Seconds of all epochs, by the clock and of the processor, and the validation accuracy after the last one."""

    clock: float
    processor: float
    accuracy: float


def timed(epochs: Callable[[], float]) -> Timing:
    clock, processor = time.perf_counter(), time.process_time()
    accuracy = epochs()
    return Timing(time.perf_counter() - clock, time.process_time() - processor, accuracy)


def ours(config: Dict[str, Any], directory: Path) -> Timing:
    """AllenNLP's trainer, as an evaluation of a selection runs it."""
    params = Params(json.loads(json.dumps(config)))
    prepare_environment(params)
    loop = TrainModel.from_params(params=params, serialization_dir=str(directory), local_rank=0)
    gc.freeze()

    def epochs() -> float:
        metrics = loop.trainer.train()
        return float(metrics["validation_accuracy"])

    return timed(epochs)


Row = Tuple[Dict[str, torch.Tensor], int]


def bare(config: Dict[str, Any], vectors: str, padding: str) -> Timing:
    """The same epochs in a bare loop."""
    torch.manual_seed(config["pytorch_seed"])
    reader = DatasetReader.from_params(Params(json.loads(json.dumps(config["dataset_reader"]))))
    parts = [list(reader.read(part)) for part in ("train", "validation")]
    vocabulary = Vocabulary.from_instances([*parts[0], *parts[1], *reader.read("test")])
    kind = MODELS[config["model"]["type"]]
    net = kind(matrix_of(vocabulary, vectors), config["model"], vocabulary.get_vocab_size("labels"))
    rows = [[row_of(instance, kind.reads, vocabulary) for instance in part] for part in parts]
    batch_size = config["data_loader"]["batch_sampler"]["batch_size"]
    widths = {name: max(len(ids[name]) for part in rows for ids, _ in part) for name in kind.reads}
    collate = Collate(widths if padding == "longest" else {})
    loaders = [DataLoader(part, batch_size, shuffle=True, collate_fn=collate) for part in rows]
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], **_options(config))
    return timed(lambda: bare_epochs(net, loaders, optimizer, config["trainer"]["num_epochs"]))


def _options(config: Dict[str, Any]) -> Dict[str, Any]:
    return {key: value for key, value in config["trainer"]["optimizer"].items() if key != "type"}


def bare_epochs(net: Classifier, loaders: Sequence[DataLoader], optimizer: Any, num_epochs: int) -> float:
    accuracy = 0.0
    for _ in range(num_epochs):
        net.train()
        for ids, labels in loaders[0]:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(ids), labels).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = [net(ids).argmax(dim=-1) == labels for ids, labels in loaders[1]]
        accuracy = torch.cat(right).float().mean().item()
    return accuracy


def row_of(instance: Instance, reads: Sequence[str], vocabulary: Vocabulary) -> Row:
    """Word ids of each text, of the right context from its end, and the label."""
    ids = {}
    for name in reads:
        words = [vocabulary.get_token_index(str(token)) for token in instance[name].tokens]
        ids[name] = torch.tensor(words[::-1] if name == "right" else words, dtype=torch.long)
    return ids, vocabulary.get_token_index(instance["label"].label, "labels")


@dataclass(frozen=True)
class Collate:
    """Pads every text of a batch to these widths, or to the longest of the batch."""

    widths: Dict[str, int]

    def __call__(self, rows: List[Row]) -> Tuple[Dict[str, torch.Tensor], torch.Tensor]:
        made = {}
        for name in rows[0][0]:
            texts = [ids[name] for ids, _ in rows]
            width = self.widths.get(name, max(1, max(map(len, texts))))
            made[name] = torch.stack([torch.nn.functional.pad(text, (0, width - len(text))) for text in texts])
        return made, torch.tensor([label for _, label in rows])


def matrix_of(vocabulary: Vocabulary, vectors: str) -> torch.Tensor:
    """The word vectors, random ones for words without. Shape: `(num_words, dim)`."""
    found: Dict[str, np.ndarray] = {}
    with open(vectors, encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.rstrip().split(" ")
            found[word] = np.array(numbers, dtype=np.float32)
    dim = len(next(iter(found.values())))
    matrix = torch.randn(vocabulary.get_vocab_size(), dim) * 0.3
    for index, word in vocabulary.get_index_to_token_vocabulary().items():
        if word in found:
            matrix[index] = torch.from_numpy(found[word])
    matrix[0] = 0.0
    return matrix


def in_turn(path: Path, *, epochs: int, repetitions: int, padding: str) -> List[Tuple[Timing, Timing]]:
    """Ours and the bare loop's timings, one pair after the other, each in a process of its own."""
    overrides = json.dumps({"trainer.num_epochs": epochs, "trainer.patience": None})
    config = load_config(path, overrides)
    request = Request(path.stem, 0, split_seed=1, random_seed=2, numpy_seed=3, pytorch_seed=4)
    pairs = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        vectors = _apart(prepared_vectors, (config, root / "vectors"), root / "log.txt")
        (filtered,) = vectors.values()
        built = evaluation_config(config, request, group_by="sentence_id", vectors=vectors)
        for number in range(repetitions):
            mine = _apart(ours, (built, root / str(number)), root / "log.txt")
            pairs.append((mine, _apart(bare, (built, filtered, padding), root / "log.txt")))
    return pairs


def prepared_vectors(config: Dict[str, Any], directory: Path) -> Dict[str, str]:
    return dict(prepare_candidate(config, group_by=None, vectors_directory=directory).vectors)


def _apart(work: Callable[..., Any], arguments: Tuple[Any, ...], log: Path) -> Any:
    (result,) = run_apart(work, {"": arguments}, logs={"": log}, settings=WorkerSettings()).values()
    if isinstance(result, BaseException):
        raise result
    return result


def add_row(table: Table, name: str, pairs: List[Tuple[Timing, Timing]], epochs: int) -> None:
    cells = [f"{statistics.median(epochs / timing.clock for timing in side):.3f}" for side in zip(*pairs, strict=True)]
    for clock in (True, False):
        ratios = [theirs.clock / mine.clock if clock else theirs.processor / mine.processor for mine, theirs in pairs]
        cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    accuracies = [f"{statistics.mean(timing.accuracy for timing in side):.3f}" for side in zip(*pairs, strict=True)]
    table.add_row(name, *cells, " / ".join(accuracies))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", nargs="+", type=Path, default=[Path(path) for path in CANDIDATES])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--padding",
        choices=PADDINGS,
        default="longest",
        help="of the bare loop: to the longest text of all or of a batch",
    )
    args = parser.parse_args()
    table = Table(title=f"{args.epochs} epochs on one core, medians of {args.repetitions} runs of each (least-most)")
    for column in ("", "ours, epochs/s", "bare, epochs/s", "ratio", "ratio, processor", "accuracy, ours / bare"):
        table.add_column(column, justify="right")
    for path in args.candidates:
        pairs = in_turn(path, epochs=args.epochs, repetitions=args.repetitions, padding=args.padding)
        add_row(table, path.stem, pairs, args.epochs)
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    import benchmark_epochs  # under its own name, so that other processes find its functions

    benchmark_epochs.main()
