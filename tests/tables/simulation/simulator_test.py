"""Replays on tables that can be worked by hand, and on scores with known means."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.reports import coming_runs as simulation  # noqa: F401  # it says how a simulation shows itself
from fiesta_allennlp.tables.simulation.planning import ScorePreset, replay
from fiesta_allennlp.tables.simulation.simulator import (
    Distribution,
    Outlook,
    Repetition,
    Simulator,
    find_best,
    prepare_simulator,
)
from fiesta_allennlp.tables.table_settings import ReplaySettings
from tests.score_tables import TDSA_8, TIE, write_split_table


def settings(**options: Any) -> ReplaySettings:
    return ReplaySettings(**{"repetitions": 6, "seed": 7, **options})


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(scores: Dict[str, List[float]]) -> str:
        return str(write_split_table(tmp_path / "scores.csv", scores))

    return write


def test_a_budget_and_a_confidence_worked_by_hand(write: Any) -> None:
    """With constant scores and a budget of 6 each of 3 candidates runs twice, in whatever order the splits come; and
    they are taken as known, so that the 3 starting evaluations of 2 candidates decide."""
    scores = write({"a": [0.1] * 4, "b": [0.3] * 4, "c": [0.2] * 4})
    simulator = prepare_simulator(settings(scores=scores, strategy="non_adaptive_fb", budget=6, batch_size=4))
    assert simulator.run_all(range(6)) == [Repetition("b", True, True, 6, 2)] * 6
    assert simulator.true_means == pytest.approx({"a": 0.1, "b": 0.3, "c": 0.2})
    sure = replay(settings(scores=scores, where=("candidate=a,b",), belief="student_t", stop="bayesian"))
    assert not sure.interrupted
    assert sure.default == Outlook.of([Repetition("b", True, True, 6, 6)] * 6)


@pytest.mark.parametrize("strategy", ["top_two", "bts"])
def test_errors_are_minimised_as_their_negatives_are_maximised(tmp_path: Path, strategy: str) -> None:
    """Repetition by repetition; the file says the direction itself, or the option does."""
    rng = np.random.default_rng(4)
    errors = {name: rng.normal(mean, 0.5, 30).round(3) for name, mean in (("a", 36), ("b", 35), ("c", 35.6))}
    results = []
    for sign, metric, minimise in ((1, "perplexity", True), (1, "-perplexity", False), (-1, "+perplexity", False)):
        rows = [f"{name},{k},0,{sign * x},{metric}" for name, row in errors.items() for k, x in enumerate(row)]
        (tmp_path / "s.csv").write_text("candidate,split,seed,score,metric\n" + "\n".join(rows))
        options = {"belief": "student_t", "max_evaluations": 28, "repetitions": 2, "minimise": minimise}
        results.append(replay(settings(scores=str(tmp_path / "s.csv"), strategy=strategy, **options)))
    shown, told, negated = results
    assert shown.default == told.default == negated.default
    assert told.simulator.true_means == pytest.approx({n: -m for n, m in negated.simulator.true_means.items()})
    assert [(result.best, result.summary["minimise"]) for result in results] == [("b", True), ("b", True), ("b", False)]
    assert "the lowest mean is" in repr(told)


@pytest.mark.parametrize(("margin", "best"), [(0, ("first", "second")), (0.02, ("first", "second", "third"))])
def test_correct_is_within_the_margin(margin: float, best: Any) -> None:
    simulator = prepare_simulator(settings(max_evaluations=99, margin=margin), TIE)
    assert find_best(simulator.source.true_means(), simulator.margin) == best


def test_a_fresh_seed_is_recorded_and_repeats_the_replay() -> None:
    options = {"confidence": 0.6, "batch_size": 4, "repetitions": 4, "max_evaluations": 32}
    first, other = (replay(settings(**options, seed=None), source=TDSA_8) for _ in range(2))
    assert first.settings.seed is not None and first.settings.seed != other.settings.seed
    assert replay(first.settings, source=TDSA_8).default == first.default


@pytest.mark.parametrize(("splits", "num_shared"), [("shared", 6), ("independent", 0)])
def test_a_strategy_sees_ordinary_histories(splits: str, num_shared: int) -> None:
    choice = {"strategy": "non_adaptive_fb", "budget": 12, "batch_size": 4}
    source = ScorePreset("two", {"third": 0.62, "first": 0.64})
    replayer = prepare_simulator(settings(splits=splits, **choice), source)
    histories = list(replayer.iterate_histories(replayer.draw(0), 0))
    assert [len(history.evaluations) for history in histories] == [0, 4, 8, 12]
    end = histories[-1]
    assert (end.candidates, end.pending) == (("third", "first"), ())
    by_key = {e.request.key: e.request.split_seed for e in end.evaluations}
    assert sorted(by_key) == [(name, k) for name in ("first", "third") for k in range(6)]
    assert sum(by_key["third", k] == by_key["first", k] for k in range(6)) == num_shared
    assert len(set(by_key.values())) == 12 - num_shared


REPETITIONS = (
    Repetition("b", True, True, 10, 3),
    Repetition("a", True, False, 20, 5),
    Repetition("b", False, True, 40, 10),
    Repetition("a", False, False, 40, 10),
)


def test_an_outlook_worked_by_hand() -> None:
    outlook = Outlook.of(REPETITIONS)
    assert (outlook.repetitions, outlook.interrupted) == (4, False)
    assert (outlook.correct, outlook.picked, outlook.wrong, outlook.open) == (0.5, 0.25, 0.25, 0.5)
    # Wilson (1927) for 2 of 4: 1/2 +- z sqrt(1/16 + z^2/64) / (1 + z^2/4), with z = 1.96
    assert outlook.correct_interval == pytest.approx((0.1500, 0.8500), abs=1e-4)
    assert outlook.wrong_interval == outlook.picked_interval == pytest.approx((0.0456, 0.6994), abs=1e-4)
    assert outlook.runs == Distribution(27.5, pytest.approx(168.75**0.5), min=10, low=10, median=20, high=40, max=40)
    assert (outlook.mean_rounds, outlook.recommended) == (7.0, {"b": 0.5, "a": 0.5})


def test_runs_below_the_least_score_need_no_end_of_scores(write: Any) -> None:
    """Two of three runs fail: a candidate makes many more runs than the limit counts, and the draws last for them."""
    scores = write({"a": [0.81, 0.77, 0.76, 0.82, 0.75, 0.74], "b": [0.73, 0.8, 0.76, 0.77, 0.81, 0.72]})
    outlook = replay(settings(scores=scores, min_score=0.78, max_evaluations=40)).default
    assert outlook.repetitions == 6 and outlook.with_replacement and outlook.runs.max > 40
    with pytest.raises(DataError, match="ran out of scores.*--with-replacement"):
        replay(settings(scores=scores, min_score=0.78, max_evaluations=40, with_replacement=False))


def test_a_replay_of_few_scores_names_the_plan(write: Any) -> None:
    options = {"confidence": 0.6, "splits": "independent", "with_replacement": True}
    for number, is_warned in ((2, True), (5, False)):
        scores = write({"a": [0.1, 0.2] * number, "b": [0.8, 0.9] * number})
        shown = repr(replay(settings(scores=scores, **options)))
        assert (f"Warning: this treats {2 * number} scores" in shown) is is_warned
        assert "drawn with replacement" in shown


NUM_CASES, SELECTIONS_PER_CASE = 32, 3


def simulator_of(case: int) -> Simulator:
    """A random problem with random options."""
    rng = np.random.default_rng(case)
    means = {name: float(rng.normal(0.5, 0.05)) for name in "abcdef"[: rng.integers(2, 7)]}
    noise_sds = {name: float(0.05 * np.exp(rng.normal(0, 0.5))) for name in means}
    options: Dict[str, Any] = {
        "splits": str(rng.choice(["shared", "shared", "independent", "official"])),
        "batch_size": int(rng.choice([1, 1, 2, 5, 8])),
        "margin": [None, 0.02, "0.5sd"][rng.integers(3)],
        "min_runs": [None, None, 6][rng.integers(3)],
        "stop": [None, None, "bayesian"][rng.integers(3)],
        "strategy": [None, None, None, "non_adaptive_fc"][rng.integers(4)],
        "confidence": float(rng.choice([0.8, 0.95])),
        "minimise": bool(rng.random() < 0.3),
        "max_evaluations": [120, 40][rng.integers(2)],
    }
    source = ScorePreset("random", means, noise_sds, split_sd=0.05 * float(rng.choice([0, 1, 3])))
    return prepare_simulator(ReplaySettings(scores="", seed=case, **options), source)


@pytest.mark.parametrize("case", range(NUM_CASES))
def test_the_live_loop_and_the_batch_agree(case: int) -> None:
    simulator = simulator_of(case)
    repetitions = range(SELECTIONS_PER_CASE)
    assert simulator.rules is not None
    together = simulator.run_all(repetitions)
    alone = [simulator.simulate_alone(repetition) for repetition in repetitions]
    assert [one.confidence for one in alone] == pytest.approx([one.confidence for one in together], rel=1e-9)
    # A loop of the batch makes complete rounds.
    ignored = {"num_rounds": 0} if simulator.settings.strategy == "non_adaptive_fc" else {}
    assert [replace(one, **ignored) for one in alone] == [replace(one, **ignored) for one in together]


def test_both_end_without_a_winner_where_only_splits_vary() -> None:
    source = ScorePreset("constant leads", {"a": 0.5, "b": 0.6}, split_sd=0.05, noise_sd=0.0)
    simulator = prepare_simulator(ReplaySettings(scores="", seed=1), source)
    (together,), alone = simulator.run_all(range(1)), simulator.simulate_alone(0)
    assert together == alone and (alone.is_named, alone.num_evaluations) == (False, 32)
