"""The whole command with real runs: both stages, an interruption in each, the report, and bad input."""

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

import fiesta_allennlp
from fiesta_allennlp.commands.command import EXIT_NO_DECISION
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.reports.report import report
from fiesta_allennlp.reports.status import status_of
from tests.commands.conftest import Call, history_of
from tests.conftest import until
from tests.programs import program_config
from tests.run_files import num_finished, scores_of
from tests.warm import Command

SPACE = {"trainer.optimizer.lr": {"low": 0.001, "high": 0.3, "log": True}, "n": [1, 4]}
CONFIGS, BUDGET, POOL = 5, 4, 8
OPTIONS = ("--configs", CONFIGS, "--finalists", 2, "--budget", BUDGET, "--metric", "accuracy", "--seed", 5)
OPTIONS += ("--pool", POOL)


pytestmark = pytest.mark.xdist_group("search")  # one search that is not disturbed serves them all


@pytest.fixture
def search(in_process: Callable[[str], Call]) -> Call:
    return in_process("search")


@pytest.fixture
def files(write_config: Callable[..., Path], tmp_path: Path) -> List[str]:
    """A template and a space."""
    template = write_config("plain").with_name("template.jsonnet")
    template.write_text("(import 'plain.jsonnet') + { trainer+: { num_epochs: std.parseJson(std.extVar('n')) } }")
    space = tmp_path / "space.json"
    space.write_text(json.dumps(SPACE))
    return [str(template), str(space)]


def start(*arguments: Any) -> Command:
    return Command(["-m", "fiesta_allennlp", "search", *arguments])


@pytest.fixture(scope="module")
def done() -> List[Any]:
    """The files and the directory of a search that was not disturbed, and its result. The first test that needs it
    makes it, once for all, by a call with the space as plain data."""
    return []


@pytest.fixture
def undisturbed(done: List[Any], files: List[str], run: Path) -> Path:
    if not done:
        options = {"configs": CONFIGS, "finalists": 2, "budget": BUDGET, "metric": "accuracy", "seed": 5, "pool": POOL}
        directory = run.with_name("undisturbed")
        done.extend([files, directory, fiesta_allennlp.search(files[0], SPACE, directory=directory, **options)])
    return Path(done[1])


@pytest.fixture
def changeable(undisturbed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undisturbed, tmp_path / "copy"))


def stages(run: Path) -> Tuple[Any, Any]:
    """Everything about the runs of both stages but when they were made."""
    return scores_of(run / "screening"), scores_of(run)


def test_both_stages_run_and_the_second_one_begins_anew(undisturbed: Path, search: Call) -> None:
    screened, selected = history_of(undisturbed / "screening"), history_of(undisturbed)
    assert len({e.request.candidate for e in screened.evaluations}) == len(screened.evaluations) == CONFIGS
    assert screened.candidates == tuple(f"#{number}" for number in range(1, POOL + 1))
    best_first = sorted(screened.evaluations, key=lambda evaluation: -evaluation.score)
    assert list(selected.candidates) == [evaluation.request.candidate for evaluation in best_first[:2]]
    assert len(selected.evaluations) == BUDGET

    seeds = [{e.request.pytorch_seed for e in history.evaluations} for history in (screened, selected)]
    splits = [{e.request.split_seed for e in history.evaluations} for history in (screened, selected)]
    assert seeds[0].isdisjoint(seeds[1]) and splits[0].isdisjoint(splits[1])
    assert len(splits[0]) == CONFIGS and len(splits[1]) == BUDGET // 2

    one = undisturbed / "screening" / "evaluations" / f"{best_first[0].request.candidate}-0"
    config, metrics = (json.loads((one / name).read_text()) for name in ("config.json", "metrics.json"))
    assert config["evaluate_on_test"] is False and config["dataset_reader"].get("has_test", True)
    assert metrics["best_validation_accuracy"] == best_first[0].score and "test_accuracy" not in metrics

    output = search.done("-s", undisturbed, "--recover")  # there is nothing left to do
    assert f"Screened {CONFIGS} configs" in output
    for name in selected.candidates:
        assert re.search(rf"^{name}: trainer\.optimizer\.lr=[\d.]+,n=[14]$", output, re.M)
    output = search.refused("-s", undisturbed, "--recover", "--configs", 9)
    assert "the screening is over, so --configs no longer has an effect" in output


def test_the_report_has_the_screening(undisturbed: Path, tmp_path: Path) -> None:
    made = report(undisturbed, output=tmp_path / "report")
    found = made.screening
    assert found is not None
    assert (len(found.scores), found.num_points, found.searcher) == (CONFIGS, POOL, "gp_ei")
    assert list(found.best_so_far) == [max(found.scores[: k + 1]) for k in range(CONFIGS)]
    first = found.finalists[0]
    assert first.score_before == max(found.scores) and first.num_runs == BUDGET // 2
    assert first.mean_after is not None and first.optimism == pytest.approx(max(found.scores) - first.mean_after)
    page = (tmp_path / "report" / "report.html").read_text()
    assert [line.partition(": ")[0] for line in made.legend] == [finalist.name for finalist in found.finalists]
    assert all(line in page and f"% {line}" in (tmp_path / "report" / "table.tex").read_text() for line in made.legend)
    assert set(made.legend) <= set(status_of(undisturbed).sentences)
    assert "The finalists in both stages" in page and "The best validation score after each run" in page
    assert (tmp_path / "report" / "figures" / "best_so_far.png").is_file()
    with pytest.raises(ConfigError, match="this is the first stage of a search"):
        report(undisturbed / "screening")


@pytest.mark.parametrize(("stage", "how"), [("screening", signal.SIGINT), ("", signal.SIGKILL)])
def test_a_search_that_is_stopped_goes_on_to_the_same_runs(
    undisturbed: Path, files: List[str], run: Path, search: Call, stage: str, how: signal.Signals
) -> None:
    command = start(*files, *OPTIONS, "-s", run)
    until(lambda: (run / stage / "store.sqlite").exists() and num_finished(run / stage) >= 2)
    command.send_signal(how)
    output, _ = command.communicate()
    if stage:
        assert command.returncode == 130, output
        assert "Interrupted in the screening; nothing that finished is lost." in output
        assert f"search -s {run} --recover" in output
        assert not (run / "store.sqlite").exists()
        status = status_of(run)
        assert status.sentences[0] == "The screening is interrupted." and not status.running
        assert f" of {CONFIGS} configs finished, 0 failed, " in status.sentences[1]
        with pytest.raises(StoreError, match="The search here is still screening configs"):
            report(run)
    search.done("-s", run, "--recover")
    assert stages(run) == stages(undisturbed)


def test_force_replaces_both_stages_once_the_checks_have_passed(
    changeable: Path, files: List[str], search: Call
) -> None:
    before = stages(changeable)
    assert "this directory already has a selection" in search.refused(*files, *OPTIONS, "-s", changeable)
    assert "gp_ie" in search.refused(*files, *OPTIONS, "-s", changeable, "--force", "--searcher", "gp_ie")
    assert stages(changeable) == before
    search.done(*files, *OPTIONS, "-s", changeable, "--force", "--configs", 3, "--seed", 6)
    assert len(stages(changeable)[0]) == 3 and stages(changeable)[1].isdisjoint(before[1])


def test_a_template_that_changed_is_refused(changeable: Path, done: Any, search: Call) -> None:
    (changeable / "store.sqlite").unlink()  # as where the second stage has not begun
    shutil.rmtree(changeable / "evaluations")
    template = Path(done[0][0])
    before = template.read_text()
    template.write_text(before + " + { model+: { dropout: 0.5 } }")
    status, output = search("-s", changeable, "--recover")
    template.write_text(before)
    assert status == 2 and "has changed" in output and "'model.dropout'" in output


def test_a_call_has_a_result_and_refuses_what_is_wrong(
    files: List[str], run: Path, undisturbed: Path, done: Any
) -> None:
    found = done[2]
    assert found.selection is not None and found.selection.num_evaluations == BUDGET
    assert len(found.screening["candidates"]) == CONFIGS
    assert f"Screened {CONFIGS} configs" in repr(found) and "test accuracy" in repr(found)
    with pytest.raises(ConfigError, match="the space: 'n': must be a list of different values"):
        fiesta_allennlp.search(files[0], {"n": [1, 1]}, directory=run, configs=3)
    with pytest.raises(ConfigError, match="--configs N"):
        fiesta_allennlp.search(files[0], SPACE, directory=run)


def test_a_dry_run_of_a_very_large_search_checks_some_points(files: List[str], search: Call, tmp_path: Path) -> None:
    """The template is a program, so that no model is built."""
    config = json.dumps(program_config(tmp_path, "true"))
    Path(files[0]).write_text(f"{config} + {{ environment: {{ LR: std.extVar('lr') }} }}")
    Path(files[1]).write_text('{"lr": {"low": 0.001, "high": 0.3}}')
    given = [*files, "--metric", "accuracy", "--dry-run"]
    output = search.refused(*given, "--configs", 100_000)
    assert "--searcher gp_ei compares all pairs of points" in output
    output = search.done(*given, "--configs", 100_000, "--searcher", "random")
    assert "Checked 100 of 100,000 points" in output
    assert "The screening would run 100000 of 100000 configs once" in output
    assert re.search(r"^The data of the screening: \d+ instances, no groups\.$", output, re.M)
    output = search.done(*given, "--runs", 12)
    assert "The screening would run 10 of 50 configs once" in output
    assert "The 2 best would then be the candidates of a selection" in output
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--finalists", 4, "--budget", 3], "budget must be at least"),
        (["--searcher", "gp_ehvi"], "--searcher gp_ehvi is for two objectives"),
        (["--metric", "f1"], "does not report the metric 'f1'"),
        (["-o", '{"trainer.num_epoch": 3}'], "num_epoch"),
        ([], "read the variable 'layers'"),
    ],
)
def test_bad_input_is_refused_before_the_first_run(
    files: List[str], run: Path, search: Call, options: List[Any], said: str
) -> None:
    Path(files[1]).write_text(json.dumps({**SPACE, "layers": [1, 2]} if not options else SPACE))
    assert said in search.refused(*files, "--pool", 5, "--configs", 5, "--metric", "accuracy", *options, "-s", run)
    assert not (run / "screening" / "store.sqlite").exists() and not (run / "store.sqlite").exists()


def test_a_screening_of_failures_decides_nothing(files: List[str], run: Path, search: Call) -> None:
    Path(files[0]).write_text(json.dumps(program_config(Path(files[0]).parent, "exit 1")))
    Path(files[1]).write_text('{".environment": [{"LR": "1"}, {"LR": "2"}, {"LR": "3"}]}')
    status, output = search(*files, "--configs", 3, "--searcher", "random", "--metric", "accuracy", "-s", run)
    assert status == EXIT_NO_DECISION, output
    assert "No comparison: too many runs of the screening failed" in output
    assert not (run / "store.sqlite").exists()
