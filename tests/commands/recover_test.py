"""Going on with a selection: with other candidates, in another place, after an interruption at the worst moments."""

import json
import shutil
import signal
from contextlib import closing
from pathlib import Path
from typing import Callable, List
from unittest.mock import Mock

import psutil
import pytest

from fiesta_allennlp import select
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.options import settings_to_json
from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.reports.progress import LiveTable
from fiesta_allennlp.selecting.store import RunStore, open_for_reading
from tests.commands.conftest import EQUALLY, GOOD, POOR, Call, Selections, history_of, scores_by_seed
from tests.commands.fiesta_select_test import start
from tests.conftest import until
from tests.run_files import entry_of, num_finished, scores_of, summary_of
from tests.running.conftest import until_ended
from tests.warm import Command


@pytest.fixture
def third(write_program: Callable[..., str]) -> str:
    return write_program("third", POOR)


def outcomes_of(run: Path) -> "dict[str, int]":
    """When the outcome of each run was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in run.glob("evaluations/*/outcome.json")}


def test_a_removed_candidate_is_refused_then_withdrawn_then_taken_back(selections: Selections, third: str) -> None:
    candidates, run = selections.candidates, selections.run
    selections.begin(third, *EQUALLY, "--budget", 6)
    of_blind = {row for row in scores_of(run) if row[0] == "blind"}
    given = [candidates[0], third]

    assert "Add --recover" in selections.refused(*candidates, "--allow", "removed")
    selections.refused(*given, "--recover", said="candidate 'blind'.*--allow removed")

    output = selections.resume(*given, "--allow", "removed", "--budget", 9)
    assert "removed: blind: " in output and "Note: --budget changed" in output
    blind = entry_of(run, "blind")
    assert (blind["state"], blind["num_evaluations"]) == ("removed", 2) and blind["prob_best"] < 0.01
    assert {row for row in scores_of(run) if row[0] == "blind"} == of_blind
    assert [entry_of(run, name)["num_evaluations"] for name in ("able", "third")] == [3, 3]

    selections.refused(candidates[0], "--recover", said="candidate 'third'.*--allow removed")  # for one call alone

    Path(candidates[1]).unlink()  # not read while it is withdrawn
    selections.resume("--budget", 9)
    assert entry_of(run, "blind")["state"] != "taking part"

    Path(candidates[1]).write_text(Path(third).read_text())  # the same config as before
    selections.resume(*candidates, third, "--budget", 9)
    blind = entry_of(run, "blind")
    assert (blind["state"], blind["failed_because"], blind["num_evaluations"]) == ("taking part", None, 3)


def test_a_directory_that_was_moved_goes_on_where_it_is(
    write_config: Callable[..., Path], selections: Selections, tmp_path: Path
) -> None:
    """Also with word vectors, of which the directory has those of the data."""
    pytest.importorskip("allennlp")
    run, moved = selections.run, tmp_path / "elsewhere" / "moved"
    (tmp_path / "vectors.txt").write_text("food 1 2 3 4\nand 3 4 5 6\ngreat 0 1 0 1\n")
    tokens = {"type": "embedding", "embedding_dim": 4, "pretrained_file": str(tmp_path / "vectors.txt")}
    model = {"text_field_embedder": {"token_embedders": {"tokens": tokens}}}
    trained = selections.of(*(str(write_config(name, **model)) for name in ("one", "two")))
    trained.begin(*EQUALLY, "--seed", 5, "--budget", 2)
    with closing(RunStore(RunDirectory(run), create=False)) as store:  # as after a kill
        store._database.execute(
            "UPDATE evaluations SET status = 'pending', finished_order = NULL WHERE candidate = 'two'"
        )
    moved.parent.mkdir()
    shutil.move(run, moved)
    before = outcomes_of(moved)
    selections.call.done("-s", moved, "--recover", "--budget", 3)
    assert not run.exists()
    assert len(scores_of(moved)) == 2
    with open_for_reading(RunDirectory(moved)) as store:
        assert store.meta().changes == ({"option": "budget", "before": 2, "now": 3, "num_done": 1},)
    assert before.items() <= outcomes_of(moved).items(), "what had finished is not trained again"
    trained.begin(*EQUALLY, "--seed", 5, "--budget", 3)
    assert scores_of(moved) == scores_of(run)


def test_a_selection_keeps_others_out_until_two_signals_in_one_moment_end_it(selections: Selections) -> None:
    run = selections.run
    for name, script in (("able", GOOD), ("blind", POOR)):
        selections.write(name, f"sleep 0.2; {script}")
    process = start(*selections.candidates, "-s", run, *EQUALLY, "--budget", "400")
    until(lambda: num_finished(run) >= 1 or process.poll() is not None)
    for options in ([], ["--recover"], ["--force"]):
        selections.refused(*selections.typed(*options), said="another selection is running")
    workers = children_of(process)
    assert workers

    def is_over() -> bool:
        """Send two signals in one moment, and more until the command has ended."""
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        return process.poll() is not None

    until(is_over)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    until_ended(workers)
    selections.resume("--budget", 2)  # the store is whole


def children_of(process: Command) -> List[int]:
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_selection_that_is_stopped_during_the_checks_begins_again_without_force(
    selections: Selections, trained: List[str], how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, marker = selections.run, selections.run.with_name("a_check_runs")
    monkeypatch.setenv("HOLDING_MARKER", str(marker))
    reader = ("--include-package", "tests.holding", "--overrides", '{"dataset_reader.type": "holding"}')
    process = start(*trained, *reader, "-s", run, "--budget", "56", "--seed", "5")
    until(lambda: marker.exists() or process.poll() is not None)
    workers = children_of(process)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    if how == signal.SIGINT:
        assert process.returncode == 130, output
        assert "Interrupted before" in output and "Traceback" not in output
        until_ended(workers)
        assert not RunDirectory(run).store.exists()
    else:
        assert RunDirectory(run).store.exists()
        copy = shutil.copytree(run, run.with_name("copy"))
        assert "before its first run" in selections.call.refused("-s", copy, "--recover")
    selections.begin("--budget", 2, "--seed", 6)
    assert summary_of(run)["seed"] == "6"


def test_results_that_could_not_be_written_come_later(selections: Selections, monkeypatch: pytest.MonkeyPatch) -> None:
    run = selections.run
    with monkeypatch.context() as patched:
        patched.setattr("fiesta_allennlp.selecting.results.result.write_json_file", Mock(side_effect=KeyboardInterrupt))
        status, output = selections.call(*selections.typed(*EQUALLY, "--budget", 4))
    assert status == 130
    assert f"allennlp fiesta-select -s {run} --recover" in output
    before = outcomes_of(run)
    with monkeypatch.context() as patched:
        full = Mock(side_effect=OSError(28, "No space left on device"))
        patched.setattr("fiesta_allennlp.selecting.workspace.write_csv", full)
        selections.refused("--recover", said="No space left.*store has them")
    selections.resume()
    assert summary_of(run)["num_evaluations"] == len(scores_of(run)) == len(before) == 4
    assert outcomes_of(run) == before


def test_a_selection_by_documents_is_not_gone_on_with(call: Call, run: Path) -> None:
    with closing(RunStore(RunDirectory(run), create=True)) as store:
        store.set_meta(kind="documents", settings=settings_to_json(DocumentSettings()))
    call.refused("-s", run, "--recover", said="allennlp fiesta-documents")


def test_points_are_selected_among_resumed_with_more_and_repeated(selections: Selections, tmp_path: Path) -> None:
    run, template = selections.run, selections.write("template", POOR, environment={})
    Path(template).write_text(f"{Path(template).read_text()} + {{ environment+: {{ N: std.extVar('n') }} }}")
    points = tmp_path / "points.jsonl"
    points.write_text('{"n": 1}\n{"n": 1, "environment.X": "2"}\n')
    settings = {"candidates": [template], "points": str(points), "metric": "accuracy", "budget": 2}
    config = tmp_path / "settings.jsonnet"
    config.write_text(json.dumps({**settings, "strategy": "non_adaptive_fb", "seed": 5}))
    selections.call.done("-s", run, "--config", config)
    assert (run / "evaluations" / "n=1-0" / "outcome.json").exists()

    points.write_text('{"n": 1}\n{"n": 2}\n')
    selections.refused("--recover", "--budget", 3, said="candidate 'n=1,environment.X=2")

    points.write_text('{"n": 1}\n{"n": 1, "environment.X": "2"}\n{"n": 2}\n')
    result = select(directory=run, recover=True, budget=3, points=points)
    assert [candidate.num_evaluations for candidate in result.candidates] == [1, 1, 1]
    assert num_finished(run) == 3


def test_a_selection_whose_store_is_deleted_stops_and_leaves_no_result(selections: Selections) -> None:
    """By its own candidate."""
    run, begin = selections.run, selections.typed("--budget", 4)
    selections.write("able", f"rm -f {run}/store.sqlite; {GOOD}")
    selections.refused(*begin, said="'store.sqlite' was deleted")
    assert not list(run.rglob("selection.json")) and not list(run.rglob("evaluations.csv"))
    for options in (begin, ["--recover"]):
        selections.refused(*options, said="missing from 'store.sqlite'.*--force")


def test_data_that_are_away_for_a_moment_cost_no_candidate(
    selections: Selections, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are away once both candidates have finished a run, until seven failures have been told."""
    data, away, original = reviews / "train.jsonl", reviews / "train.away", LiveTable.on_outcome
    told: List[Outcome] = []

    def on_outcome(progress: LiveTable, outcome: Outcome) -> None:
        original(progress, outcome)
        told.append(outcome)
        failures = [each for each in told if isinstance(each, Failure)]
        finished = {each.request.candidate for each in told if each not in failures}
        if len(failures) < 7 and len(finished) == 2 and data.exists():
            data.rename(away)
        if len(failures) == 7 and away.exists():
            away.rename(data)

    monkeypatch.setattr("fiesta_allennlp.selecting.recovery.RETRY_PAUSES", (0.01,) * 8)
    monkeypatch.setattr(LiveTable, "on_outcome", on_outcome)
    selections.begin(*EQUALLY, "--seed", 5, "--budget", 6, "--workers", 2)
    assert scores_of(selections.run) == scores_by_seed(5, 6)
    history = history_of(selections.run)
    assert {failure.kind for failure in history.failures} == {"machine"} and len(history.failures) >= 7
    assert not history.withdrawn
