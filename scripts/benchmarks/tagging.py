"""Seconds of an epoch of a shipped tagger, `cnn_crf`, beside the same model in a bare PyTorch loop with pytorch-crf and
packed sequences, and where the time goes. On one thread, in turn, in one process.

    pip install pytorch-crf
    python scripts/benchmarks/tagging.py --files TRAIN,VALIDATION,TEST --vectors glove.6B.100d.txt

An epoch is the training set with its gradients, and the validation set with its loss, its tags and their F1. Seconds
are those of the processor, so that other programs on the machine matter less.
"""

import copy
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, DefaultDict, Dict, Iterator, List, Mapping, Sequence, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import torch
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer, Trainer
from common import make_parser, print_table, show
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.tagging.encodings import SpanScores
from fiesta_allennlp.trainings.allennlp.preparing import filtered_vectors

CONFIG = Path("training_configs/tagging/cnn_crf.jsonnet")
BATCH_SIZE = 64
SEED = 7
HEADINGS = ("", "training", "validation", "epoch", "validation F1 after the last")
HEADINGS_PARTS = ("part", "seconds", "share")


@dataclass(frozen=True)
class Epoch:
    """Seconds of one epoch, and the F1 on the validation set after it."""

    training: float
    validation: float
    score: float


@dataclass(frozen=True)
class Data:
    """What both sides train on: instances, and numbers of words, characters and tags."""

    train: List[Any]
    validation: List[Any]
    vocab: Vocabulary


class Ours:
    """The shipped config in AllenNLP's own trainer."""

    def __init__(self, config: Mapping[str, Any], scratch: Path) -> None:
        params = Params(copy.deepcopy(dict(config)))
        params["trainer"]["run_confidence_checks"] = False  # they look at the first batch of the first epoch
        reader = DatasetReader.from_params(params["dataset_reader"])
        loaders = {
            part: DataLoader.from_params(
                params["data_loader"].duplicate(), reader=reader, data_path=params[f"{part}_data_path"]
            )
            for part in ("train", "validation")
        }
        instances = {part: list(loader.iter_instances()) for part, loader in loaders.items()}
        vocab = Vocabulary.from_instances([*instances["train"], *instances["validation"]])
        for loader in loaders.values():
            loader.index_with(vocab)
        self.data = Data(instances["train"], instances["validation"], vocab)
        torch.manual_seed(SEED)
        holder = params["model"]["text_field_embedder"]["token_embedders"]["tokens"]
        words = frozenset(vocab.get_token_to_index_vocabulary("tokens"))
        holder["pretrained_file"] = str(filtered_vectors(holder["pretrained_file"], words, scratch))
        self.model = Model.from_params(params["model"], vocab=vocab)
        self.loader = loaders["train"]
        trainer = Trainer.from_params(
            params["trainer"],
            model=self.model,
            data_loader=self.loader,
            validation_data_loader=loaders["validation"],
            serialization_dir=None,
        )
        assert isinstance(trainer, GradientDescentTrainer)
        self.trainer = trainer

    @property
    def matrix(self) -> torch.Tensor:
        """The word vectors before training. Shape: `(num_words, embedding_dim)`."""
        return self.model._text_field_embedder.token_embedder_tokens.weight.detach().clone()

    def epoch(self, number: int) -> Epoch:
        start = time.process_time()
        self.trainer._train_epoch(number)
        middle = time.process_time()
        with torch.no_grad():
            self.trainer._validation_loss(number)
        end = time.process_time()
        score = self.model.get_metrics(reset=True)["f1-measure-overall"]
        if self.trainer._learning_rate_scheduler is not None:
            self.trainer._learning_rate_scheduler.step(None)
        return Epoch(middle - start, end - middle, score)

    def parts(self) -> Dict[str, float]:
        """Seconds of each part of one pass over the training set."""
        spent: DefaultDict[str, float] = defaultdict(float)
        model, optimizer = self.model.train(), self.trainer.optimizer
        embedder = model._text_field_embedder
        modules = {
            "characters": embedder.token_embedder_characters,
            "word vectors": embedder.token_embedder_tokens,
            "encoder": model._encoder,
            "CRF": model._crf,
        }
        with timed_modules(modules, spent):
            batches = iter(self.loader)
            while True:
                with timed("batches", spent):
                    batch = next(batches, None)
                if batch is None:
                    break
                with timed("zero gradients, clamp, step", spent):
                    optimizer.zero_grad()
                with timed("forward", spent):
                    loss = model(**batch)["loss"]
                with timed("gradients", spent):
                    loss.backward()
                with timed("zero gradients, clamp, step", spent):
                    torch.nn.utils.clip_grad_value_(model.parameters(), 5)
                    optimizer.step()
        spent["forward, the rest"] = spent.pop("forward") - sum(spent[name] for name in modules)
        return dict(spent)


@contextmanager
def timed(name: str, spent: DefaultDict[str, float]) -> Iterator[None]:
    start = time.process_time()
    yield
    spent[name] += time.process_time() - start


@contextmanager
def timed_modules(modules: Mapping[str, torch.nn.Module], spent: DefaultDict[str, float]) -> Iterator[None]:
    """Adds up the seconds in the `forward` of each."""
    starts: Dict[str, float] = {}
    handles = []
    for name, module in modules.items():
        handles.append(module.register_forward_pre_hook(lambda *_, n=name: starts.update({n: time.process_time()})))
        handles.append(
            module.register_forward_hook(
                lambda *_, n=name: spent.update({n: spent[n] + time.process_time() - starts[n]})
            )
        )
    yield
    for handle in handles:
        handle.remove()


class Net(torch.nn.Module):
    """The model of `cnn_crf` as one would write it without a library: every word through the CNN, packed sequences."""

    def __init__(self, matrix: torch.Tensor, num_characters: int, num_tags: int) -> None:
        from torchcrf import CRF

        super().__init__()
        self.words = torch.nn.Embedding.from_pretrained(matrix, freeze=False)
        self.characters = torch.nn.Embedding(num_characters, 30, padding_idx=0)
        self.cnn = torch.nn.Conv1d(30, 50, 3)
        self.linear = torch.nn.Linear(50, 50)
        self.lstm = torch.nn.LSTM(matrix.shape[1] + 50, 100, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(200, num_tags)
        self.dropout = torch.nn.Dropout(0.5)
        self.crf = CRF(num_tags, batch_first=True)

    def forward(self, words: torch.Tensor, characters: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        # Shape: (batch_size * num_words, 30, num_characters)
        letters = self.characters(characters.flatten(0, 1)).transpose(1, 2)
        # Shape: (batch_size, num_words, 50)
        spelt = self.linear(torch.relu(self.cnn(letters)).amax(dim=2)).view(*words.shape, -1)
        embedded = self.dropout(torch.cat([self.words(words), spelt], dim=-1))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.dropout(states))


Sentence = Tuple[List[int], List[List[int]], List[int]]
"""Numbers of words, of the characters of each, and of tags."""


class Bare:
    """A loop of its own over the same sentences, with the same settings."""

    def __init__(self, data: Data, matrix: torch.Tensor, trainer: Mapping[str, Any]) -> None:
        self.tags = data.vocab.get_index_to_token_vocabulary("labels")
        self.train, self.validation = ([self._coded(one) for one in part] for part in (data.train, data.validation))
        torch.manual_seed(SEED)
        self.net = Net(matrix, data.vocab.get_vocab_size("token_characters"), len(self.tags))
        options = {key: value for key, value in trainer["optimizer"].items() if key != "type"}
        self.optimizer = torch.optim.SGD(self.net.parameters(), **options)
        gamma = trainer["learning_rate_scheduler"]["gamma"]
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma)
        self.rng = np.random.default_rng(SEED)

    @staticmethod
    def _coded(instance: Any) -> Sentence:
        indexed = instance["tokens"]._indexed_tokens
        words, characters = indexed["tokens"]["tokens"], indexed["characters"]["token_characters"]
        return words, characters, instance["tags"]._indexed_labels

    def batches(self, sentences: Sequence[Sentence]) -> List[Tuple[torch.Tensor, ...]]:
        """Batches of sentences of like lengths, in random order: words, characters, tags, mask and lengths."""
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i][0]) * self.rng.uniform(0.9, 1.1))
        chunks = [order[i : i + BATCH_SIZE] for i in range(0, len(order), BATCH_SIZE)]
        self.rng.shuffle(chunks)
        return [padded([sentences[i] for i in chunk]) for chunk in chunks]

    def epoch(self) -> Epoch:
        start = time.process_time()
        self.net.train()
        for words, characters, tags, mask, lengths in self.batches(self.train):
            self.optimizer.zero_grad()
            loss = -self.net.crf(self.net(words, characters, lengths), tags, mask=mask)
            loss.backward()
            torch.nn.utils.clip_grad_value_(self.net.parameters(), 5)
            self.optimizer.step()
        self.scheduler.step()
        middle = time.process_time()
        score = self.validate()
        return Epoch(middle - start, time.process_time() - middle, score)

    @torch.no_grad()
    def validate(self) -> float:
        self.net.eval()
        scores, total = SpanScores(), 0.0
        for words, characters, tags, mask, lengths in self.batches(self.validation):
            logits = self.net(words, characters, lengths)
            total -= self.net.crf(logits, tags, mask=mask).item()
            decoded = self.net.crf.decode(logits, mask=mask)
            gold = [row[:length] for row, length in zip(tags.tolist(), lengths.tolist(), strict=True)]
            scores(*([[self.tags[tag] for tag in row] for row in rows] for rows in (decoded, gold)))
        return scores.get_metric()["f1-measure-overall"]


def padded(sentences: Sequence[Sentence]) -> Tuple[torch.Tensor, ...]:
    """Words, characters, tags and mask, of shape `(batch_size, num_words, ...)`; lengths, of shape `(batch_size,)`."""
    lengths = torch.tensor([len(words) for words, _, _ in sentences])
    num_words = int(lengths.max())
    width = max(3, *(len(word) for _, characters, _ in sentences for word in characters))
    ids = np.zeros((2, len(sentences), num_words), dtype=np.int64)
    letters = np.zeros((len(sentences), num_words, width), dtype=np.int64)
    for row, (words, characters, tags) in enumerate(sentences):
        ids[0, row, : len(words)] = words
        ids[1, row, : len(tags)] = tags
        for column, word in enumerate(characters):
            letters[row, column, : len(word)] = word
    mask = torch.arange(num_words) < lengths.unsqueeze(1)
    return torch.from_numpy(ids[0]), torch.from_numpy(letters), torch.from_numpy(ids[1]), mask, lengths


def report(ours: Sequence[Epoch], bare: Sequence[Epoch], parts: Mapping[str, float]) -> None:
    """Medians over the epochs of each side."""
    rows = []
    totals = []
    for name, epochs in (("fiesta_allennlp", ours), ("bare PyTorch, pytorch-crf", bare)):
        training = statistics.median(epoch.training for epoch in epochs)
        validation = statistics.median(epoch.validation for epoch in epochs)
        totals.append(statistics.median(epoch.training + epoch.validation for epoch in epochs))
        rows.append([name, *(f"{part:.2f}" for part in (training, validation, totals[-1])), f"{epochs[-1].score:.3f}"])
    print_table(HEADINGS, rows, title=f"cnn_crf, processor seconds of an epoch, medians of {len(ours)}")
    show(f"\nratio of an epoch {totals[0] / totals[1]:.2f} (wanted: at most 1)")
    total = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    rows = [[name, f"{spent:.2f}", f"{spent / total:.0%}"] for name, spent in ordered]
    print_table(HEADINGS_PARTS, rows, title="One pass over the training set")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--files", required=True, help="training, validation and test set, separated by commas")
    parser.add_argument("--vectors", required=True, help="100-dimensional word vectors in GloVe's format")
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.update(FIESTA_TAGGING=args.files, FIESTA_VECTORS=args.vectors)
    config = Params.from_file(str(CONFIG)).as_dict(quiet=True)
    with tempfile.TemporaryDirectory() as scratch:
        ours = Ours(config, Path(scratch))
    bare = Bare(ours.data, ours.matrix, config["trainer"])
    pairs = [(ours.epoch(number), bare.epoch()) for number in range(args.epochs)]
    mine, theirs = zip(*pairs, strict=True)
    report(mine, theirs, ours.parts())


if __name__ == "__main__":
    main()
