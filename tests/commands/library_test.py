"""The commands as calls: what they return, how that shows itself, and that nothing ends the process."""

import inspect
from dataclasses import MISSING, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import fiesta_allennlp
from fiesta_allennlp import choose_system, confirm, next_runs, plan, replay, select
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.documents.document_selection import DocumentsResult
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.running.fork_server import EXIT_WITHOUT_GUARD
from fiesta_allennlp.running.processes import ProcessDied, process_error
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.tables.table_settings import NextSettings, PlanSettings, ReplaySettings
from tests.score_tables import NOISY, split_rows, write_split_table


@pytest.fixture
def programs(candidates: List[str]) -> Dict[str, str]:
    return dict(zip(("td[red]", "a"), candidates, strict=True))


def test_a_selection_is_a_typed_result(programs: Dict[str, str], tmp_path: Path, capfd: Any) -> None:
    options = {"metric": "accuracy", "workers": 2, "seed": 3, "strategy": {"type": "non_adaptive_fb"}}
    result = select(programs, directory=tmp_path / "run", budget=4, **options)
    assert capfd.readouterr() == ("", "")
    assert result == Result.read(str(tmp_path / "run"))
    assert (result.best, result.stopped_by, result.decided, result.num_evaluations) == ("td[red]", "budget", True, 4)
    assert "td[red] leads with P(best) " in repr(result) and "\x1b" not in repr(result)
    assert (result.directory, result.seed, result.belief["type"]) == (tmp_path / "run", "3", "moderated_t")
    scores = result.scores()
    assert [candidate.name for candidate in result.candidates] == list(scores) == list(programs)
    for candidate in result.candidates:
        assert candidate.mean == pytest.approx(np.mean(scores[candidate.name]))
    more = select(directory=tmp_path / "run", recover=True, budget=6, progress=True)
    assert more.num_evaluations == 6 and "2 at a time" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("candidates", "settings", "words"),
    [
        (["a", "b"], {"confidnce": 0.9}, "'confidnce'.* 'confidence'"),
        (["a", "b"], {"metric": 3}, "^--metric must .* 3"),
        (["a", "b"], {"include_package": ["no_such_package"]}, "'no_such_package'"),
        ("bow.jsonnet", {}, "candidates must .*bow.jsonnet"),
        (Path("bow.jsonnet"), {}, "candidates must .*bow.jsonnet"),
    ],
)
def test_what_can_be_mended_is_a_fiesta_error(
    candidates: Any, settings: Dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(FiestaError, match=words):
        select(candidates, directory=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_replay_of_files_rows_lists_and_sources_is_a_typed_result(tmp_path: Path, capfd: Any) -> None:
    scores = {"<a>": (0.1, 0.2, 0.3), "b": np.array([0.6, 0.7, 0.8], dtype=np.float32)}
    file = write_split_table(tmp_path / "scores.csv", scores)
    options: Dict[str, Any] = {"strategy": "non_adaptive_fb", "repetitions": 3, "seed": 1}
    first, *others = (replay(given, budget=4, **options) for given in (file, str(file), split_rows(scores)))
    assert capfd.readouterr() == ("", "") and "3 simulated selections of non_adaptive_fb" in repr(first)
    assert all((other.candidates, other.default) == (first.candidates, first.default) for other in others)
    assert (first.best, first.default.correct, first.default.runs.mean, first.default.mean_rounds) == ("b", 1.0, 4, 4)
    lists = replay(scores, budget=4, **options)
    assert (lists.best, lists.settings.splits) == ("b", "official"), "lists say nothing about splits"
    assert replay(file, budget=4, where={"candidate": ["<a>", "b"]}, **options).default == first.default
    assert replay(NOISY, budget=8, **options).best == "best"


def test_a_selection_among_systems_is_a_typed_result(
    golden_selections: Callable[[str], Path], golden_copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = DocumentsResult.read(directory := golden_copy("documents"))
    monkeypatch.chdir(golden_selections("documents").with_name("project"))
    again = choose_system(directory=directory, recover=True)
    assert (again.best, again.candidates) == (result.best, result.candidates)
    with pytest.raises(ConfigError, match="systems must be"):
        choose_system("a=b.jsonl", documents="d.jsonl", directory=directory / "other")


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (select, Settings),
        (choose_system, DocumentSettings),
        (replay, ReplaySettings),
        (plan, PlanSettings),
        (next_runs, NextSettings),
    ],
)
def test_a_signature_shows_the_options_with_their_defaults(call: Any, settings: Any) -> None:
    parameters = inspect.signature(call).parameters
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    own = ("candidates", "systems", "scores", "source")  # arguments of the call itself
    declared = {f.name: f for f in fields(settings) if f.name not in own}
    expected = {
        name: f.default if f.default_factory is MISSING else f.default_factory() for name, f in declared.items()
    }
    assert {name: parameters[name].default for name in expected} == expected


def test_a_confirmation_shows_the_options_about_resources_alone() -> None:
    parameters = inspect.signature(confirm).parameters
    assert (parameters["workers"].default, parameters["runs"].default) == (1, None)
    assert "metric" not in parameters and "resources" not in parameters


def test_the_version_is_that_of_the_package() -> None:
    assert fiesta_allennlp.__version__ == version("fiesta_allennlp")


def test_a_script_without_a_guard_is_told_what_to_write() -> None:
    code = compile(
        'from fiesta_allennlp import select\nselect(["a.jsonnet", "b.jsonnet"], directory="runs")', "script.py", "exec"
    )
    with pytest.raises(ConfigError, match=r'`if __name__ == "__main__":`'):
        exec(code, {"__name__": "__mp_main__"})  # as a process that the call starts would import it
    with pytest.raises(ConfigError, match="__main__"):
        process_error(ProcessDied(EXIT_WITHOUT_GUARD))
