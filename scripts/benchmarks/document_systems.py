"""Trains small systems for three tasks on real files, and writes their answers as `fiesta documents` reads them.

    python scripts/benchmarks/document_systems.py DIRECTORY

DIRECTORY/TASK gets `documents.jsonl` and `NAME.jsonl` of every system. The tasks are `sentiment` (the polarity of
targets, a review is a document) and `category` (what a sentence is about) of SemEval-2014 Restaurants, and `spans`
(ten posts of WNUT-17 are a document). The training needs scikit-learn, and takes a minute or two.
"""

import argparse
import json
import os
import re
from itertools import groupby
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple
from xml.etree import ElementTree

import numpy as np

from fiesta_allennlp.core.errors import ConfigError

DATA = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
POSTS = 10
"""Posts of a document of `spans`."""

SEED = 14

SYNTHETIC, LABELS = "synthetic", ("x", "y", "z")
NUM_SYNTHETIC, NUM_SYSTEMS, ABILITIES = 1500, 40, (0.8, 0.25)
"""Synthetic documents and systems; mean and standard deviation of the systems' abilities."""

Item = Dict[str, Any]
"""The fields of an item with its gold annotation, `label` or `tags`."""

Documents = Dict[str, List[Item]]
"""The items of each document by its id."""


def sentences(name: str) -> List[ElementTree.Element]:
    return list(ElementTree.parse(DATA / "semeval14" / name).iter("sentence"))


def targets(name: str) -> Documents:
    """The targets of each review, without conflicting ones. An id begins with the review's."""
    found: Documents = {}
    for sentence in sentences(name):
        text = str(sentence.findtext("text"))
        for term in sentence.iter("aspectTerm"):
            begin, end = int(term.get("from", 0)), int(term.get("to", 0))
            item = {"left": text[:begin], "target": text[begin:end], "right": text[end:], "label": term.get("polarity")}
            if item["label"] != "conflict":
                found.setdefault(str(sentence.get("id")).rpartition("#")[0] or str(sentence.get("id")), []).append(item)
    return found


def categories(name: str) -> Documents:
    """The sentences that are about one thing."""
    found: Documents = {}
    for sentence in sentences(name):
        labels = [each.get("category") for each in sentence.iter("aspectCategory")]
        if len(labels) == 1:
            found[str(sentence.get("id"))] = [{"text": sentence.findtext("text"), "label": labels[0]}]
    return found


def posts(*names: str) -> Documents:
    """The posts with their tags, `POSTS` in a document."""
    items: List[Item] = []
    for name in names:
        lines = (DATA / "tagging" / "wnut17" / name).read_text(encoding="utf-8").splitlines()
        for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
            if filled:
                rows = [line.split("\t")[:2] for line in block]
                items.append({"tokens": [row[0] for row in rows], "tags": [row[1].strip() for row in rows]})
    return {f"posts-{begin}": items[begin : begin + POSTS] for begin in range(0, len(items), POSTS)}


def of_target(item: Item, width: int) -> str:
    """The sentence, and the words within `width` of the target with marks for their side."""
    left, right = re.findall(r"\w+|[!?]", item["left"]), re.findall(r"\w+|[!?]", item["right"])
    near = [f"l_{word}" for word in left[-width:]] + [f"r_{word}" for word in right[:width]] if width else []
    return " ".join([*left, item["target"], *right, *near])


def of_token(tokens: Sequence[str], place: int, width: int) -> Dict[str, Any]:
    """Features of a token: its form and, within `width`, those of its neighbours."""
    found: Dict[str, Any] = {"bias": 1}
    for offset in range(-width, width + 1):
        if 0 <= place + offset < len(tokens):
            token = tokens[place + offset]
            shape = re.sub(r"\d", "0", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", token)))
            shape = re.sub(r"(.)\1+", r"\1", shape)
            found.update({f"{offset}w": token.lower(), f"{offset}s": shape, f"{offset}e": token[-3:].lower()})
    return found


def classifiers() -> Dict[str, Tuple[Any, float, int]]:
    """Models of texts, the share of the training documents that they learn from, and how wide they look."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    def words(**options: Any) -> Any:
        return TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+", **options)

    chars = {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True}
    even = {"class_weight": "balanced", "random_state": SEED}
    union = make_union(words(ngram_range=(1, 2)), TfidfVectorizer(**chars))
    return {
        "union": (make_pipeline(union, LogisticRegression(C=20, max_iter=500, **even)), 1.0, 4),
        "logistic": (make_pipeline(words(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=500, **even)), 1.0, 4),
        "svm": (make_pipeline(words(), LinearSVC(C=0.3, **even)), 1.0, 4),
        "svm_narrow": (make_pipeline(words(), LinearSVC(C=0.3, **even)), 0.5, 0),
        "svm_chars": (make_pipeline(TfidfVectorizer(**chars), LinearSVC(C=0.3, **even)), 1.0, 0),
        "bayes": (make_pipeline(words(), MultinomialNB(alpha=0.1)), 1.0, 3),
        "logistic_tenth": (make_pipeline(words(), LogisticRegression(C=10, max_iter=500, **even)), 0.1, 3),
        "neighbours": (make_pipeline(words(), KNeighborsClassifier(7)), 1.0, 0),
        "tree": (make_pipeline(words(), DecisionTreeClassifier(max_depth=25, **even)), 1.0, 3),
    }


def taggers() -> Dict[str, Tuple[Any, float, int]]:
    """Models of tokens, as `classifiers`."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Perceptron, SGDClassifier
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.pipeline import make_pipeline

    def hashed() -> Any:
        return FeatureHasher(2**18)

    hinge = {"alpha": 2e-5, "random_state": SEED, "max_iter": 30}
    return {
        "svm_wide": (make_pipeline(hashed(), SGDClassifier(**hinge)), 1.0, 2),
        "svm": (make_pipeline(hashed(), SGDClassifier(**hinge)), 1.0, 1),
        "svm_token": (make_pipeline(hashed(), SGDClassifier(**hinge)), 1.0, 0),
        "svm_third": (make_pipeline(hashed(), SGDClassifier(**hinge)), 0.33, 1),
        "perceptron": (make_pipeline(hashed(), Perceptron(random_state=SEED)), 1.0, 1),
        "bayes": (make_pipeline(FeatureHasher(2**14, alternate_sign=False), BernoulliNB(alpha=0.01)), 1.0, 1),
    }


def learnt_from(train: Documents, share: float) -> List[Item]:
    """The items of this share of the documents, always the same ones."""
    order = np.random.default_rng(SEED).permutation(len(train))[: max(1, round(share * len(train)))]
    lists = list(train.values())
    return [item for place in order for item in lists[place]]


def answer_all(task: str, train: Documents, test: Documents) -> Dict[str, List[List[Any]]]:
    """The answers of every system to the items of each document."""
    found: Dict[str, List[List[Any]]] = {}
    for name, (model, share, width) in (taggers() if task == "spans" else classifiers()).items():
        read = inputs_of(task, width)
        learnt = learnt_from(train, share)
        model.fit([one for item in learnt for one in read(item)], [gold for item in learnt for gold in golds_of(item)])
        answers = []
        for items in test.values():
            predicted = [model.predict(read(item)).tolist() for item in items]
            answers.append([each if task == "spans" else each[0] for each in predicted])
        found[name] = answers
    return found


def inputs_of(task: str, width: int) -> Any:
    """What a model takes of an item: one text, or the features of each token."""
    if task == "sentiment":
        return lambda item: [of_target(item, width)]
    if task == "category":
        return lambda item: [item["text"]]
    return lambda item: [of_token(item["tokens"], place, width) for place in range(len(item["tokens"]))]


def golds_of(item: Item) -> Sequence[str]:
    return item["tags"] if "tags" in item else [item["label"]]


SOURCES = {
    "sentiment": (lambda: targets("Restaurants_Train_v2.xml"), lambda: targets("Restaurants_Test_Gold.xml")),
    "category": (lambda: categories("Restaurants_Train_v2.xml"), lambda: categories("Restaurants_Test_Gold.xml")),
    "spans": (lambda: posts("wnut17train.conll"), lambda: posts("emerging.dev.conll", "emerging.test.annotated")),
}


def synthetic() -> Tuple[Documents, Dict[str, List[List[str]]]]:
    """Documents of 3.5 items on average, and the answers of systems. An item is right if the ability of the system,
    from a normal distribution, exceeds the difficulty of document and item, and the noise of this answer."""
    rng = np.random.default_rng(SEED)
    sizes = 1 + rng.poisson(2.5, NUM_SYNTHETIC)
    gold = rng.integers(len(LABELS), size=sizes.sum())
    hard = np.repeat(rng.normal(0, 0.5, NUM_SYNTHETIC), sizes) + rng.normal(0, 0.5, len(gold))
    ends = np.cumsum(sizes)[:-1]
    answers: Dict[str, List[List[str]]] = {}
    for number, ability in enumerate(rng.normal(*ABILITIES, NUM_SYSTEMS)):
        right = ability > hard + rng.normal(0, 0.7, len(gold))
        given = np.where(right, gold, (gold + rng.integers(1, len(LABELS), len(gold))) % len(LABELS))
        answers[f"system{number:02d}"] = [[LABELS[g] for g in each] for each in np.split(given, ends)]
    labels = [[{"label": LABELS[g]} for g in each] for each in np.split(gold, ends)]
    return {f"document-{number}": items for number, items in enumerate(labels)}, answers


def write_task(task: str, directory: Path) -> None:
    """Train the systems of a task, and write documents and answers."""
    if task == SYNTHETIC:
        write_all(directory, *synthetic())
        return
    if not DATA.is_dir():
        raise ConfigError(f"{DATA}: no such directory. Set FIESTA_SHARED_DATA to the one with semeval14 and tagging.")
    train, test = (read() for read in SOURCES[task])
    write_all(directory, test, answer_all(task, train, test))


def write_all(directory: Path, test: Documents, every: Mapping[str, List[List[Any]]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write(directory / "documents.jsonl", [{"id": name, "items": items} for name, items in test.items()])
    for name, answers in every.items():
        write(
            directory / f"{name}.jsonl",
            [{"id": document, "items": given} for document, given in zip(test, answers, strict=True)],
        )


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tasks", nargs="*", default=[*SOURCES, SYNTHETIC], choices=[*SOURCES, SYNTHETIC])
    args = parser.parse_args()
    for task in args.tasks:
        write_task(task, args.directory / task)


if __name__ == "__main__":
    main()
