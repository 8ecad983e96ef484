"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import argparse
import json
import re
import tarfile
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp.commands import COMMANDS, add_command
from fiesta_allennlp.commands.command import DOCS_HINT, CommandParser
from tests.commands.conftest import Call, Selections
from tests.conftest import classifier_config
from tests.run_files import summary_of

ACCURACY = ("--metric", "accuracy")


@pytest.fixture
def refused(trained: List[str], call: Call, run: Path) -> Callable[..., str]:
    """Tries a selection of the AllenNLP configs, which must be refused with a message, and returns it."""

    def check(message: str, *options: Any, candidates: Any = trained) -> str:
        output = call.refused(*candidates, "-s", run, *options, said=message)
        assert not (run / "evaluations").exists()
        return output

    return check


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*ACCURACY, "--group-by", "author"], r"candidate 'able'.*--group-by author: "),
        ([*ACCURACY, "--overrides", '{"model.type": "basic_clasifier"}'], r"'able'.*'basic_classifier'"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy, loss"),
        (["--metric", "-loss"], r"--metric: expected one argument.*--OPTION=-VALUE"),
        (["--recover", "--force"], "--recover .*--force"),
        (["--allow", "all"], "^error: --allow must .*unseeded, pretrained, removed, units .*'all'"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_bad_options(refused: Callable[..., str], options: List[Any], message: str) -> None:
    refused(message, *options)


def test_a_command_without_quotes_is_told_to_have_them(run: Path, call: Call) -> None:
    said = r"the placeholder {seed} stands alone. Put every command into quotes: 'NAME=python train.py {seed}'"
    call.refused("a=python", "train.py", "--arch", "a", "{seed}", *ACCURACY, "-s", run, said=said)


def test_a_long_command_is_no_file_and_a_long_path_ends_in_one_line(reviews: Path, call: Call) -> None:
    command = f"a=python train.py {{train}} {{test}} {{seed}} {'--option value ' * 30}"
    (reviews / "b.py").touch()
    options = ("--data", reviews / "train.jsonl", "--data", reviews / "test.jsonl", *ACCURACY, "--dry-run")
    assert "train.py" in call.refused(command, "b=b.py {train} {test} {seed}", *options)
    assert "Shorten it with NAME=PATH" in call.refused("n" * 300 + "=" + command, *options)
    for name in ("report", "plan"):
        call.command(name).refused("n" * 300, said="error: n*: File name")


@pytest.mark.parametrize("name", ["next", "plan", "replay", "report"])
def test_the_metric_of_a_table_is_a_column(name: str, call: Call) -> None:
    said = "unrecognized arguments: --metric f1. Did you mean '--score NAME'?"
    call.command(name).refused("scores.csv", "--metric", "f1", said=re.escape(said))


def test_a_refused_resumption_changes_nothing(selections: Selections, candidates: List[str], run: Path) -> None:
    options = ["--strategy", '{"type": "bts", "num_starts": 4}', "--belief", "student_t", "--stop", "bayesian"]
    selections.begin(*options, "--seed", 4, "--max-evaluations", 8, "--confidence", 0.999999999)
    before = (run / "evaluations.csv").read_text()
    able, blind = candidates
    for given, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        ([able, f"other={blind}"], "candidate 'blind'"),
        (["--budget", 1], "error: --budget must be at least"),
    ]:
        selections.refused(*given, "--recover", said=message)
    config = Path(able).read_text()
    Path(able).write_text(config.replace("stdout", "{directory}/m.json"))
    selections.refused("--recover", said="candidate 'able'.*'metrics' was \"stdout\"")
    assert (run / "evaluations.csv").read_text() == before
    Path(able).write_text(config)
    selections.resume("--seed", 4, "--confidence", 0.99999999, "--max-evaluations", 9)
    summary = summary_of(run)
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


def test_weights_that_were_trained_on_the_pool_are_refused_on_random_splits_unless_allowed(
    write_config: Callable[..., Path], run: Path, refused: Callable[..., str]
) -> None:
    archive = run.parent / "model.tar.gz"
    (run.parent / "config.json").write_text(json.dumps(classifier_config(run.parent)))
    with tarfile.open(archive, "w:gz") as members:
        members.add(run.parent / "config.json", "config.json")
    model = {"model": {"type": "from_archive", "archive_file": str(archive)}}
    pair = [write_config("scratch"), write_config("finetuned", model)]
    fact = f"'finetuned': {archive}, which it starts from, was trained on .*train.jsonl"
    refused(f"{fact}.*--splits official.*--allow pretrained", *ACCURACY, candidates=pair)
    for option in (("--splits", "official"), ("--allow", "pretrained")):
        refused("'finetuned'.*vocabulary", *ACCURACY, *option, candidates=pair)  # the archive has nothing else


BAD_LINE = '{"text": "x", "label": '


@pytest.mark.parametrize(
    ("files", "change", "message"),
    [
        ("train.jsonl", lambda text: BAD_LINE, r"'able'.*train.jsonl, after 0 instances: .*Expecting"),
        (
            "*.jsonl",
            lambda text: text.replace('"bad"', '"good"'),
            "'able'.*all 72 instances .*'good'",
        ),
    ],
    ids=("json", "one label"),
)
def test_bad_data(reviews: Path, refused: Callable[..., str], files: str, change: Any, message: str) -> None:
    for path in reviews.glob(files):
        path.write_text(change(path.read_text()))
    refused(message, *ACCURACY)


def test_a_missing_data_file_and_vectors_of_another_width(
    write_config: Callable[..., Path], run: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run.parent
    (root / "below").mkdir()
    monkeypatch.chdir(root / "below")
    one = write_config("one", {"train_data_path": "nowhere.jsonl"})
    two = write_config("two", {"test_data_path": "test.jsonl"})
    vectors = classifier_config(root)["model"]["text_field_embedder"]
    vectors["token_embedders"]["tokens"]["pretrained_file"] = str(root / "v.txt")
    three = write_config("three", text_field_embedder=vectors)
    said = refused("^error: 3 invalid candidates", *ACCURACY, candidates=[one, two, three])
    for place in ("nowhere.jsonl", "test.jsonl", "v.txt"):
        assert place in said
    (root / "v.txt").write_text("food 1 2\nand 3 4\n")
    refused(r"'three'.*'embedding_dim' is 4.*v.txt", *ACCURACY, candidates=[three, write_config("four")])


def parser_of(name: str, *, shows_all: bool) -> CommandParser:
    commands = argparse.ArgumentParser(prog="fiesta").add_subparsers()
    return add_command(commands, name, command_name=name, program="fiesta", shows_all=shows_all)


def options_in(text: str) -> List[str]:
    """The long names of the options that a help lists."""
    return re.findall(r"^  (?:-\w.*, )?(--[a-z-]+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_before_options_and_ends_in_the_guides(name: str) -> None:
    text = parser_of(name, shows_all=False).format_help()
    assert 0 < text.index(f"examples:\n  fiesta {name}") < text.index("options:\n") < text.index(DOCS_HINT)
    everything = parser_of(name, shows_all=True)
    declared = [action.option_strings[-1] for action in everything._actions if action.option_strings]
    assert {option.replace("--no-", "--") for option in declared} == set(options_in(everything.format_help()))


def test_the_help_of_select_has_what_people_use_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    common, everything = (options_in(parser_of("select", shows_all=shown).format_help()) for shown in (False, True))
    assert len({*common, "--include-package"} - {"--help", "--help-all"}) == 20
    assert {"--metric", "--serialization-dir", "--recover", "--workers", "--scores"} <= set(common) < set(everything)
    (rest,) = re.findall(r"all options \((\d+) more\)", parser_of("select", shows_all=False).format_help())
    assert int(rest) == len(everything) - len(common)
    with pytest.raises(SystemExit) as stopped:
        parser_of("select", shows_all=True).parse_args(["--help-all"])
    assert stopped.value.code == 0 and "--strategy" in capsys.readouterr().out
