"""Trains TDSA archives on SemEval-2014 Restaurants, each model also on a third of the data, and asks all of them about
every review of the test part: what `benchmark_documents` replays.

    python scripts/restaurant_systems.py --data DIRECTORY --vectors 'vectors.%dd.txt.gz' --output DIRECTORY

Writes `documents.jsonl`, one review in each line with its targets as items, and `NAME.jsonl` with the predictions of
each system. About six minutes on an idle core. Archives that are there already are not trained again.
"""

import argparse
import json
import os
import random
from pathlib import Path
from typing import Any, Dict, List, Mapping
from xml.etree import ElementTree

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

from allennlp.common import Params
from allennlp.models.archival import archive_model

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.documents.document_file import read_documents
from fiesta_allennlp.documents.systems.archive import Archive
from fiesta_allennlp.documents.systems.archive_server import answered, load
from fiesta_allennlp.documents.tasks import Classification
from fiesta_allennlp.executors.processes import run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.tdsa.semeval_xml import read_sentences
from fiesta_allennlp.trainings.evaluator import train

MODELS = ("tdlstm_50", "atae_50", "ian_50", "lstm_50")
SHARES = {"": 1.0, "_third": 1 / 3}
VALIDATION_SHARE = 0.2
SEED = 13


def write_parts(data: Path, work: Path) -> None:
    """Training files of both sizes and a validation file, by sentence, from the official training part."""
    sentences = list(ElementTree.parse(data / "Restaurants_Train_v2.xml").getroot())
    random.Random(SEED).shuffle(sentences)
    num_validation = round(VALIDATION_SHARE * len(sentences))
    _write_xml(sentences[:num_validation], work / "validation.xml")
    training = sentences[num_validation:]
    for name, share in SHARES.items():
        _write_xml(training[: round(share * len(training))], work / f"train{name}.xml")


def _write_xml(sentences: List[ElementTree.Element], path: Path) -> None:
    root = ElementTree.Element("sentences")
    root.extend(sentences)
    ElementTree.ElementTree(root).write(path, encoding="utf-8")


def config_of(model: str, size: str, work: Path) -> Dict[str, Any]:
    """The shipped config of a model, on files of this size."""
    config = Params.from_file(f"training_configs/tdsa/{model}.jsonnet").as_dict(quiet=True)
    del config["test_data_path"], config["evaluate_on_test"]
    config.update(
        train_data_path=str(work / f"train{size}.xml"),
        validation_data_path=str(work / "validation.xml"),
        random_seed=SEED,
        numpy_seed=SEED,
        pytorch_seed=SEED,
    )
    config["trainer"]["cuda_device"] = -1
    return config


def train_archive(config: Mapping[str, Any], directory: Path) -> None:
    train(dict(config), directory, {})
    archive_model(str(directory))


def write_reviews(data: Path, path: Path) -> None:
    """One document for each review of the test part; its targets, save those of conflicting polarity, are the items."""
    reviews: Dict[str, List[Dict[str, Any]]] = {}
    for sentence in read_sentences(data / "Restaurants_Test_Gold.xml"):
        review = sentence.sentence_id.rpartition("#")[0]
        for term in sentence.terms:
            if term.polarity != "conflict":
                item = {"text": sentence.text, "target": term.term, "from": term.start, "to": term.end}
                reviews.setdefault(review, []).append({**item, "label": term.polarity})
    lines = [json.dumps({"id": review, "items": items}) for review, items in reviews.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_predictions(archives: Mapping[str, Path], output: Path) -> None:
    """Ask every archive about every review. In this process, where AllenNLP is imported already."""
    file = read_documents(output / "documents.jsonl", Classification(), {})
    for name, path in archives.items():
        system = Archive(str(path))
        predictor = load(system.options(packages=()))
        with (output / f"{name}.jsonl").open("w", encoding="utf-8") as out:
            for document in file.documents:
                answers = [answered(predictor, question, None) for question in system.questions(document)]
                out.write(json.dumps({"id": document.id, "items": answers}) + "\n")
        print(f"asked {name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    os.environ.update({"FIESTA_DATA": str(args.data), "FIESTA_VECTORS": args.vectors})
    work = args.output / "archives"
    work.mkdir(parents=True, exist_ok=True)
    write_parts(args.data, work)
    write_reviews(args.data, args.output / "documents.jsonl")
    names = {f"{model}{size}": (model, size) for model in MODELS for size in SHARES}
    missing = [name for name in names if not (work / name / "model.tar.gz").exists()]
    results = run_apart(
        train_archive,
        {name: (config_of(*names[name], work), work / name) for name in missing},
        logs={name: work / f"{name}.log" for name in names},
        settings=WorkerSettings(),
        at_once=args.workers,
        on_done=lambda name: print(f"trained {name}", flush=True),
    )
    for name, result in results.items():
        if isinstance(result, BaseException):
            raise SystemExit(f"training {name} failed: {result}; see {work / name}.log")
    write_predictions({name: work / name / "model.tar.gz" for name in names}, args.output)


if __name__ == "__main__":
    main()
