"""The commands as calls: what they return, how that shows itself, and that nothing ends the process."""

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from pebble import ProcessExpired

import fiesta_allennlp
from fiesta_allennlp import choose_system, replay, select
from fiesta_allennlp.errors import ConfigError, DataError, FiestaError, StoreError
from fiesta_allennlp.isolation.fork_server import NO_GUARD, check_guard
from fiesta_allennlp.replays.sources import PRESETS
from fiesta_allennlp.reports.results import SelectionResult, SystemsResult
from tests.conftest import REPOSITORY
from tests.document_systems import write_documents, write_program
from tests.run_files import summary_of

QUICK = {"trainer": {"num_epochs": 1}}


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Dict[str, str]:
    """Two candidates over the sample, by names that are markup in HTML."""
    monkeypatch.chdir(REPOSITORY)
    return {"<b>&": "training_configs/sample/lstm.jsonnet", "td[red]": "training_configs/sample/tdlstm.jsonnet"}


def test_the_calls_are_names_of_the_package() -> None:
    assert set(dir(fiesta_allennlp)) >= {"select", "replay", "report"}
    with pytest.raises(AttributeError, match="no attribute 'selekt'"):
        fiesta_allennlp.selekt  # noqa: B018


def test_a_selection_is_a_typed_result(sample: Dict[str, str], tmp_path: Path, capfd: Any) -> None:
    options = {"metric": "accuracy", "overrides": QUICK, "workers": 2, "seed": 3}
    sample = {"a": sample["<b>&"], "td[red]": sample["td[red]"]}
    result = select(sample, directory=tmp_path / "run", budget=4, strategy={"type": "non_adaptive_fb"}, **options)
    assert capfd.readouterr() == ("", "")
    summary = summary_of(tmp_path / "run")
    assert result == SelectionResult.from_summary(summary, tmp_path / "run")
    assert result == SelectionResult.read(str(tmp_path / "run"))
    assert (result.stopped_by, result.decided, result.num_evaluations) == ("budget", True, 4)
    assert (result.directory, result.seed, result.belief["type"]) == (tmp_path / "run", "3", "split_paired")
    assert result.best in sample
    scores = result.scores()
    assert [candidate.name for candidate in result.candidates] == list(scores) == list(sample)
    for candidate in result.candidates:
        assert candidate.num_evaluations == len(scores[candidate.name]) == 2
        assert candidate.mean == pytest.approx(np.mean(scores[candidate.name]))
    more = select(directory=tmp_path / "run", recover=True, budget=6, progress=True)
    assert more.num_evaluations == 6
    assert "Training 2 at once on this machine" in capfd.readouterr().out


def test_best_is_none_until_the_selection_has_decided(tmp_path: Path) -> None:
    summary = {**vars(shown("a")), "best": "a", "stopped_by": "max_evaluations"}
    undecided = SelectionResult.from_summary(summary, tmp_path)
    assert (undecided.best, undecided.leading, undecided.decided) == (None, "a", False)
    assert "Inconclusive" in repr(undecided)
    decided = SelectionResult.from_summary({**summary, "stopped_by": "confidence"}, tmp_path)
    assert (decided.best, decided.leading) == ("a", "a")


def shown(name: str) -> SelectionResult:
    """A result with two candidates, of which one has this name."""
    entry = {
        "num_evaluations": 3,
        "mean": 0.5,
        "sd": 0.01,
        "prob_best": 0.25,
        "prob_within_margin": 0.25,
        "failures": 1,
        "failure_reasons": ["a-0 error: <script>"],
        "withdrawn": False,
        "withdrawn_because": None,
        "seconds": 9.0,
        "mean_seconds": 3.0,
    }
    best = {**entry, "name": name, "prob_best": 0.75, "prob_within_margin": 0.75}
    summary = {
        "best": name,
        "confidence": 0.75,
        "margin": 0.0,
        "stopped_by": "confidence",
        "num_evaluations": 6,
        "num_failures": 2,
        "metric": "f1",
        "strategy": {"type": "top_two"},
        "belief": {"type": "student_t"},
        "splits": "shared",
        "seed": "1",
        "seconds": 18.0,
        "seconds_of_equal_allocation": 18.0,
        "candidates": [best, {**entry, "name": "other"}],
        "a_key_of_a_later_version": 1,
    }
    return SelectionResult.from_summary(summary, Path("runs/x"))


def test_a_result_shows_itself_as_text() -> None:
    text = repr(shown("best[1]"))
    assert str(shown("best[1]")) == text
    assert "best[1] is the best with probability 0.750, by f1, after 6 runs of 2 candidates" in text
    assert [line.split() for line in text.splitlines() if line.startswith("  other")] == [
        ["other", "3", "1", "0.5000", "0.0100", "0.250", "9"]
    ]
    assert "Everything is in runs/x." in text
    assert "\x1b" not in text


def test_a_result_shows_itself_as_html_with_names_escaped() -> None:
    html = shown("<img src=x>&[red]\"'")._repr_html_()
    assert "<td>&lt;img src=x&gt;&amp;[red]&quot;&#x27;</td>" in html
    assert "<img" not in html
    assert html.count("<tr>") == 3
    assert "<td>0.750</td>" in html
    assert "<caption>test f1</caption>" in html


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"confidnce": 0.9}, "'confidnce' is an unknown setting. Did you mean 'confidence'?"),
        ({"splits": "alone"}, "^--splits must be one of"),
        ({"budget": 4, "confidence": 0.9}, "^--confidence and --budget are mutually exclusive"),
        ({"metric": 3}, "^--metric must be a string but got 3"),
    ],
)
def test_what_can_be_mended_is_a_fiesta_error(
    sample: Dict[str, str], tmp_path: Path, settings: Dict[str, Any], words: str
) -> None:
    named = {"first": sample["<b>&"], "second": sample["td[red]"]}
    with pytest.raises(FiestaError, match=words):
        select(named, directory=tmp_path / "run", **settings)


@pytest.mark.parametrize("candidates", ["bow.jsonnet", Path("bow.jsonnet")])
def test_one_text_is_no_list_of_candidates(candidates: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"candidates must be a list.*but is the string 'bow.jsonnet'. Give"):
        select(candidates, directory=tmp_path / "run")
    with pytest.raises(ConfigError, match=r"but is the string 'first'"):
        replay("tie", candidates="first")
    assert not (tmp_path / "run").exists()


def test_one_text_is_one_package(sample: Dict[str, str], tmp_path: Path) -> None:
    named = {"first": sample["<b>&"], "second": sample["td[red]"]}
    with pytest.raises(ConfigError, match="'no_such_package'"):
        select(named, directory=tmp_path / "run", include_package="no_such_package")


def test_no_result_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "selection.json").write_text("{}")
    for directory in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match="cannot be read as the result of a selection"):
            SelectionResult.read(directory)


def test_a_replay_is_a_typed_result(capfd: Any) -> None:
    scores = {"<a>": [0.1] * 4, "b": np.full(4, 0.3, dtype=np.float32), "c": (0.2,) * 4}
    options = {"strategy": "non_adaptive_fb", "budget": 6, "batch_size": 4, "repetitions": 5, "processes": 1}
    result = replay(scores, **options, evaluations_per_split=2)
    assert capfd.readouterr() == ("", "")
    assert (result.repetitions, result.best, result.correct, result.wrong) == (5, "b", 1.0, 0.0)
    assert (result.num_evaluations, result.num_rounds, result.mean_evaluations) == ((6,) * 5, (2,) * 5, 6.0)
    assert [(c.name, c.recommended) for c in result.candidates] == [("<a>", 0), ("b", 1), ("c", 0)]
    assert "5 repetitions of non_adaptive_fb" in repr(result)
    assert "<td>&lt;a&gt;</td><td>0.1000</td><td></td>" in result._repr_html_()


def test_a_replay_takes_presets_files_and_sources(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    file.write_text(json.dumps({"a": [0.1, 0.2, 0.3], "b": [0.6, 0.7, 0.8]}))
    options: Dict[str, Any] = {"strategy": "non_adaptive_fb", "repetitions": 3, "processes": 1, "seed": 1}
    first, second = (replay(given, budget=4, **options) for given in (file, str(file)))
    assert (first.candidates, first.num_evaluations) == (second.candidates, second.num_evaluations)
    assert replay("tie", budget=4, candidates=["first", "fourth"], **options).best == "first"
    assert replay(PRESETS["noisy"], budget=8, **options).best == "best"


def test_a_wrong_replay_is_a_fiesta_error() -> None:
    with pytest.raises(ConfigError, match="'repetition' is an unknown setting. Did you mean 'repetitions'?"):
        replay("tie", repetition=3)
    with pytest.raises(DataError, match="scores, candidate 'a', score 2 of 2"):
        replay({"a": [0.1, float("nan")], "b": [0.2, 0.3]})
    with pytest.raises(ConfigError, match="nor a preset. Did you mean 'tie'"):
        replay("tiw")


def test_a_selection_among_systems_is_a_typed_result(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "documents.jsonl", 60)
    systems = [write_program(tmp_path, name, wrong=wrong, cost=0.5) for name, wrong in (("able", 20), ("poor", 2))]
    given = dict(text.split("=", 1) for text in systems)
    result = choose_system(given, documents=documents, directory=tmp_path / "run", seed=4, belief="student_t")
    assert (result.best, result.stopped_by, result.decided) == ("able", "confidence", True)
    able, poor = result.candidates
    assert able.num_queries == able.num_documents == able.num_evaluations
    assert result.cost == pytest.approx(0.5 * (able.num_queries + poor.num_queries))
    assert "able is the best with probability" in repr(result) and "<td>poor</td>" in result._repr_html_()
    assert SystemsResult.read(tmp_path / "run") == result
    again = choose_system(directory=tmp_path / "run", recover=True)
    assert [candidate.measure for candidate in again.candidates] == [able.measure, poor.measure]
    with pytest.raises(ConfigError, match="systems must be a list"):
        choose_system("a=b.jsonl", documents=documents, directory=tmp_path / "other")


def test_a_script_without_a_guard_is_told_what_to_write() -> None:
    code = compile('from fiesta_allennlp import replay\nreplay("tie", processes=2)', "script.py", "exec")
    with pytest.raises(ConfigError, match=r'put this call below `if __name__ == "__main__":`'):
        exec(code, {"__name__": "__mp_main__"})  # as a process that the call starts would import it
    with pytest.raises(ConfigError, match="put this call below"):
        check_guard(ProcessExpired("it ended", code=NO_GUARD))
    check_guard(ProcessExpired("it ended", code=1))
