"""The recipes of docs/scripts.md, run as a user types them, with small programs that take exactly those arguments."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from fiesta_allennlp.__main__ import main
from fiesta_allennlp.candidates.candidate_types import limit_to_one_epoch
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "scripts.md").read_text(encoding="utf-8")
(RECIPES,) = re.findall(r"## Can each run get a new split\?\n.*?```bash\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [shlex.split(text.replace("\\\n", " "), comments=True) for text in RECIPES.split("\n\n")]

PROGRAM = """
import argparse, json, pathlib
parser = argparse.ArgumentParser(allow_abbrev=False)
for name in {named}:
    parser.add_argument(name, required=True)
for name in {switches}:
    parser.add_argument(name, action="store_true")
args = vars(parser.parse_args())
for name, value in args.items():
    if name in ("train", "test", "train_file", "validation_file", "test_file"):
        assert value.endswith({endings}) and pathlib.Path(value).read_text(), value
score = {score}
directory = args.get("output_dir")
if directory is None:
    print("epoch 1 of 1")
    print(json.dumps({{"accuracy": score}}))
else:
    directory = pathlib.Path(directory)
    if directory.exists() and any(directory.iterdir()):
        raise ValueError(f"Output directory ({{directory}}) already exists and is not empty.")
    directory.mkdir(exist_ok=True)
    (directory / "{file}").write_text(json.dumps({metrics}))
"""
GOOD = "(0.9 if {better} else 0.5) + int(args['{seed}']) % 100 / 1e4"

FILES = ["--train_file", "--validation_file", "--test_file"]
HF = ["--model_name_or_path", "--seed", "--output_dir"]


def write_program(path: str, named: List[str], score: str, **parts: Any) -> None:
    given: Dict[str, Any] = {"switches": (), "endings": (".jsonl",), "file": "", "metrics": "", **parts}
    Path(path).write_text(PROGRAM.format(named=named, score=score, **given))


@pytest.fixture
def programs(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the data and the programs of the recipes."""
    monkeypatch.chdir(reviews)
    for part in ("train", "test"):
        rows = [json.loads(line) for line in Path(f"{part}.jsonl").read_text().splitlines()]
        Path(f"{part}.json").write_text(Path(f"{part}.jsonl").read_text())
        Path(f"{part}.csv").write_text("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows))
    by_model = GOOD.format(better="args['model_name_or_path'].startswith('bert')", seed="seed")
    lr = GOOD.format(better="args['model'] == 'lr'", seed="seed")
    write_program("train.py", ["--model", "--train", "--test", "--seed"], lr)
    results = {"file": "all_results.json", "endings": (".json", ".csv")}
    ner = "{'eval_f1': 1.0, 'predict_f1': score, 'epoch': 3}"
    steps = ["--do_train", "--do_eval", "--do_predict"]
    write_program("run_ner.py", [*HF, *FILES], by_model, switches=steps, metrics=ner, **results)
    glue = "{'eval_accuracy': score, 'train_loss': 0.1}"
    write_program("run_glue.py", [*HF, *FILES[:2]], by_model, switches=steps[:2], metrics=glue, **results)
    return reviews


@pytest.fixture
def fiesta(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Callable[..., Any]:
    """Runs a command. Returns its exit status and all it wrote."""

    def call(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["fiesta", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, "".join(capsys.readouterr())

    return call


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[-1])
def test_a_recipe_runs_as_it_is_printed(words: List[str], programs: Path, fiesta: Callable[..., Any]) -> None:
    status, said = fiesta(*words[1:], "--strategy", "non_adaptive_fb", "--budget", "4")  # in fewer runs
    assert status == 0, said
    summary = json.loads((programs / words[-1] / "selection.json").read_text())
    assert (summary["best"], summary["num_failures"]) == (words[2].partition("=")[0], 0)
    assert 0.9 <= max(candidate["mean"] for candidate in summary["candidates"]) < 1
    assert not list(programs.glob("runs/*/evaluations/*/output/model"))


def test_a_trial_makes_a_short_run_of_each_and_keeps_nothing(programs: Path, fiesta: Callable[..., Any]) -> None:
    for name in ("train.jsonl", "test.jsonl"):
        (programs / name).write_text(10 * (programs / name).read_text())
    before = sorted(programs.rglob("*"))
    script = r"wc -l < {{test}} > lines; echo '{{\"{0}\": 0.5}}'"
    given = [f'{name}=sh -c "{script.format(name)}" {name} {{train}} {{test}} {{seed}}' for name in ("f1", "em")]
    options = ["--data", "train.jsonl", "--data", "test.jsonl", "--splits", "official", "--trial", "--metric"]
    status, said = fiesta("select", *given, *options, "f1")
    assert status == 1 and re.search(r"f1 +0\.5000 +\d+\.\d\n", said), said
    assert re.search(r"failed: em: .*'f1'.* em = 0\.5", said)
    assert Path("lines").read_text().split() == ["67"]  # of 200 beside 400, in 200 records
    Path("lines").unlink()
    assert sorted(programs.rglob("*")) == before


@pytest.mark.usefixtures("programs")
def test_a_trial_gives_all_the_same_split_if_their_runs_share_splits(fiesta: Callable[..., Any]) -> None:
    names = ("one", "two")
    script = 'cp {{test}} {0}.test; echo "{{\\"f1\\": 0.5}}"'
    given = [f"{name}=sh -c '{script.format(name)}' {{train}} {{seed}}" for name in names]
    for splits in ("shared", "independent"):
        options = ["--data", "train.jsonl", "--data", "test.jsonl", "--seed", "1", "--trial", "--metric", "f1"]
        status, said = fiesta("select", *given, *options, "--splits", splits)
        assert status == 0, said
        one, two = (Path(f"{name}.test").read_text() for name in names)
        assert (one == two) == (splits == "shared")


def test_a_trial_of_a_config_is_one_epoch() -> None:
    config = {"model": {}, "trainer": {"num_epochs": 9, "optimizer": "adam"}}
    assert limit_to_one_epoch(config)["trainer"] == {"num_epochs": 1, "optimizer": "adam"}
    assert limit_to_one_epoch({"trainer": {}})["trainer"] == {"num_epochs": 1}
    assert limit_to_one_epoch({"trainer": {"type": "own"}})["trainer"] == {"type": "own"}
