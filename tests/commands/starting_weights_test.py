"""Weights that have seen the test sets of random splits: labels mean nothing, and a trained archive knows them."""

import json
import random
from pathlib import Path
from typing import Callable

import pytest

from fiesta_allennlp.core.seeding import make_request
from tests.commands.conftest import Call
from tests.conftest import classifier_config

pytest.importorskip("allennlp")


@pytest.fixture
def meaningless(reviews: Path) -> Path:
    """The reviews with labels by chance."""
    for file in reviews.glob("*.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        rng = random.Random(file.name)
        lines = [json.dumps({**record, "label": rng.choice(["good", "bad"])}) for record in records]
        file.write_text("\n".join(lines) + "\n")
    return reviews


def test_weights_that_were_trained_on_the_pool_are_refused_or_allowed(
    meaningless: Path, write_config: Callable[..., Path], call: Call, run: Path
) -> None:
    from fiesta_allennlp.candidates.candidate_types import AllenNLPRun

    training = AllenNLPRun(classifier_config(meaningless), metric="accuracy", keep_models=True)
    training.evaluate(make_request(1, "a", 0, shared_splits=True), meaningless / "pretrained")
    call.capsys.readouterr()
    archive = meaningless / "pretrained" / "model.tar.gz"
    model = {"model": {"type": "from_archive", "archive_file": str(archive)}}
    candidates = [write_config("scratch"), write_config("finetuned", model)]
    fact = f"'finetuned': {archive}, which it starts from, was trained on .*train.jsonl"
    call.refused(*candidates, "-s", run, said=f"{fact}.*--splits official.*--allow pretrained")
    options = ["--strategy", "non_adaptive_fb", "--budget", 2]
    call.done(*candidates, "--dry-run", "--splits", "official", *options)
    call.done(*candidates, "-s", run, "--allow", "pretrained", *options)
    call.done("--recover", "-s", run, "--budget", 4)  # a selection stays allowed
