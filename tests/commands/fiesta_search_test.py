"""The whole command with real runs: both stages, an interruption in each, the report, and bad input."""

import json
import re
import shutil
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

import fiesta_allennlp
from fiesta_allennlp.commands.command import EXIT_NO_COMPARISON
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.reports.report import report
from fiesta_allennlp.reports.status import read_status
from fiesta_allennlp.searches.search_settings import SearchSettings
from fiesta_allennlp.trainings.settings import Settings, TrainingSettings
from tests.commands.conftest import Call, history_of
from tests.conftest import HAS_ALLENNLP, until
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
    pytest.importorskip("allennlp")
    if not done:
        options = {"configs": CONFIGS, "finalists": 2, "budget": BUDGET, "metric": "accuracy", "seed": 5, "pool": POOL}
        directory = run.with_name("undisturbed")
        done.extend([files, directory, fiesta_allennlp.search(files[0], SPACE, directory=directory, **options)])
    return Path(done[1])


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
    for name in selected.candidates:
        assert re.search(rf"^{name}: trainer\.optimizer\.lr=[\d.]+,n=[14]$", output, re.M)
    assert "--configs" in search.refused("-s", undisturbed, "--recover", "--configs", 9)
    with pytest.raises(ConfigError, match="'cofnigs' is an unknown setting"):
        fiesta_allennlp.search(directory=undisturbed, recover=True, cofnigs=9)


def test_the_report_is_that_of_the_second_stage(undisturbed: Path) -> None:
    made = report(undisturbed)
    assert len(made.legend) == 2 and set(made.legend) <= set(read_status(undisturbed).sentences)
    with pytest.raises(ConfigError, match="first stage"):
        report(undisturbed / "screening")


@pytest.fixture
def programs(reviews: Path) -> List[str]:
    """A template of a program that takes no time, whose score follows from its seed, and a space."""
    script = 'sleep 0.1; echo "{\\"accuracy\\": 0.$4, \\"validation_accuracy\\": 0.$4}"'
    config = json.dumps(program_config(reviews, script))
    template, space = reviews / "program.jsonnet", reviews / "program_space.json"
    template.write_text(f"{config} + {{ environment: {{ LR: std.extVar('lr') }} }}")
    space.write_text('{"lr": {"low": 0.001, "high": 0.3}}')
    return [str(template), str(space)]


@pytest.fixture(scope="module")
def done_by_programs() -> List[Path]:
    """The directory of a search among programs that was not disturbed, which the first test that needs it makes."""
    return []


@pytest.fixture
def whole(done_by_programs: List[Path], programs: List[str], search: Call, run: Path) -> Path:
    """A copy of it."""
    if not done_by_programs:
        done_by_programs.append(run.with_name("done"))
        search.done(*programs, *OPTIONS, "-s", *done_by_programs)
    return Path(shutil.copytree(done_by_programs[0], run.with_name("whole")))


@pytest.mark.parametrize(("stage", "how"), [("screening", signal.SIGINT), ("", signal.SIGKILL)])
def test_a_search_that_is_stopped_goes_on_to_the_same_runs(
    programs: List[str], whole: Path, run: Path, search: Call, stage: str, how: signal.Signals
) -> None:
    command = start(*programs, *OPTIONS, "-s", run)
    until(lambda: (run / stage / "store.sqlite").exists() and num_finished(run / stage) >= 2)
    command.send_signal(how)
    output, _ = command.communicate()
    if stage:
        assert command.returncode == 130, output
        assert f"search -s {run} --recover" in output
        assert not (run / "store.sqlite").exists()
        status = read_status(run)
        assert "interrupted" in status.sentences[0] and not status.running
        with pytest.raises(StoreError, match="still screening"):
            report(run)
    search.done("-s", run, "--recover")
    assert stages(run) == stages(whole)


def test_force_replaces_both_stages_once_the_checks_have_passed_and_a_changed_template_is_refused(
    programs: List[str], whole: Path, run: Path, search: Call
) -> None:
    whole.rename(run)
    before = stages(run)
    assert "already contains a selection" in search.refused(*programs, *OPTIONS, "-s", run)
    assert "gp_ie" in search.refused(*programs, *OPTIONS, "-s", run, "--force", "--searcher", "gp_ie")
    assert stages(run) == before
    search.done(*programs, *OPTIONS, "-s", run, "--force", "--configs", 3, "--seed", 6)
    assert len(stages(run)[0]) == 3 and stages(run)[1].isdisjoint(before[1])
    (run / "store.sqlite").unlink()  # as where the second stage has not begun
    shutil.rmtree(run / "evaluations")
    Path(programs[0]).write_text(Path(programs[0]).read_text().replace("sleep 0.1", "sleep 0"))
    search.refused("-s", run, "--recover", said="has changed.*'command")


def test_a_template_whose_runs_all_failed_is_corrected_and_the_search_goes_on(
    programs: List[str], run: Path, search: Call
) -> None:
    template = Path(programs[0])
    right = template.read_text()
    template.write_text(right.replace("sleep 0.1", "exit 4"))
    status, output = search(*programs, *OPTIONS, "--max-failures", 1, "-s", run)
    assert status == EXIT_NO_COMPARISON
    assert f"correct it, then continue with: fiesta search -s {run} --recover" in output.replace(
        "allennlp fiesta-", "fiesta "
    )
    failed_configs = {failure.request.candidate for failure in history_of(run / "screening").failures}
    template.write_text(right)
    assert "the template was changed, so failed runs start again" in search.done("-s", run, "--recover")
    screened = history_of(run / "screening")
    assert {evaluation.request.candidate for evaluation in screened.evaluations} == failed_configs
    assert not screened.pending and len(scores_of(run)) == BUDGET
    template.write_text(right.replace("sleep 0.1", "sleep 0.2"))
    search.refused("-s", run, "--recover", said="has changed.*'command")


@pytest.mark.usefixtures("undisturbed")
def test_a_call_has_a_result_and_refuses_what_is_wrong(files: List[str], run: Path, done: Any) -> None:
    found = done[2]
    assert found.selection is not None and found.selection.num_evaluations == BUDGET
    assert len(found.screening["candidates"]) == CONFIGS
    assert f"Screened {CONFIGS} configs" in repr(found)
    with pytest.raises(ConfigError, match="the space: 'n'"):
        fiesta_allennlp.search(files[0], {"n": [1, 1]}, directory=run, configs=3)
    with pytest.raises(ConfigError, match="--configs"):
        fiesta_allennlp.search(files[0], SPACE, directory=run)


def test_a_dry_run_checks_the_points_and_leaves_nothing(programs: List[str], search: Call, tmp_path: Path) -> None:
    given = [*programs, "--metric", "accuracy", "--dry-run"]
    large = tmp_path / "large.json"
    large.write_text('{"lr": {"low": 0.001, "high": 0.3}, "n": {"low": 1, "high": 1000}}')
    assert "--searcher gp_ei" in search.refused(programs[0], large, *given[2:], "--configs", 20_001)
    assert "10 of 50 configs" in search.done(*given, "--runs", 12)
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--finalists", 4, "--budget", 3], "budget must be at least"),
        (["--searcher", "gp_ehvi"], "--searcher gp_ehvi"),
        (["-o", '{"trainer.num_epoch": 3}'], "num_epoch"),
        ([], "'layers'"),
    ],
)
def test_bad_input_is_refused_before_the_first_run(
    files: List[str], run: Path, search: Call, options: List[Any], said: str
) -> None:
    said = said if HAS_ALLENNLP or not options else "AllenNLP is not installed"
    Path(files[1]).write_text(json.dumps({**SPACE, "layers": [1, 2]} if not options else SPACE))
    assert said in search.refused(*files, "--pool", 5, "--configs", 5, "--metric", "accuracy", *options, "-s", run)
    assert not (run / "screening" / "store.sqlite").exists() and not (run / "store.sqlite").exists()


SECOND_STAGE = {"strategy", "belief", "confidence", "stop", "budget", "margin", "max_evaluations", "min_score", "keep"}
"""The first stage only ranks, and keeps no model."""

COPIES = {"__post_init__", "replace", "asdict", "settings_to_json", "second_stage_settings", "changed_options"}
"""Functions that read every option and act on none."""


def test_each_stage_reads_every_option_that_is_not_of_the_other_one(
    programs: List[str], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(settings: TrainingSettings, name: str) -> Any:
        frame = sys._getframe(1)
        callers = set()
        while frame is not None:
            callers.add(frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        if not callers & COPIES:
            names_read[type(settings)].add(name)
        return object.__getattribute__(settings, name)

    names_read: Dict[type, Set[str]] = {SearchSettings: set(), Settings: set()}
    monkeypatch.setattr(TrainingSettings, "__getattribute__", read, raising=False)
    template, space = programs
    searched = fiesta_allennlp.search(
        template, space, directory=run, configs=3, finalists=2, budget=4, metric="accuracy", searcher="random"
    )
    assert searched.selection is not None and searched.selection.num_evaluations == 4
    refused = {"points"}  # beside a space
    merged = {"preset"}  # into the options that it sets
    assert {f.name for f in fields(SearchSettings)} - names_read[SearchSettings] == SECOND_STAGE | refused | merged
    assert {f.name for f in fields(TrainingSettings)} - merged <= names_read[Settings]


def test_a_screening_of_failures_announces_them_and_decides_nothing(
    programs: List[str], run: Path, search: Call
) -> None:
    Path(programs[0]).write_text(Path(programs[0]).read_text().replace("sleep 0.1", "exit 1"))
    options = ["--configs", 3, "--searcher", "random", "--metric", "accuracy", "-s", run]
    assert search(*programs, *options, "--notify", "echo $FIESTA_EVENT")[0] == EXIT_NO_COMPARISON
    assert not (run / "store.sqlite").exists()
    log = RunDirectory(run / "screening").notify_log
    until(lambda: log.exists() and sorted(log.read_text().split()) == [*["failure"] * 3, "no_comparison"])
