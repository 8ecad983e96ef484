from typing import Any, cast

import numpy as np
import pytest

from fiesta_allennlp.choosing import FixedConfidence
from fiesta_allennlp.core.errors import ConfigError
from tests.choosing.histories import THREE_EACH, history
from tests.choosing.simulation import built

CLEAR = {"a": [0.900, 0.901, 0.902, 0.900], "b": [0.500, 0.501, 0.502, 0.501]}
ANY_RNG = np.random.default_rng(0)


def prefix(count: int) -> "dict[str, list[float]]":
    return {key: values[:count] for key, values in CLEAR.items()}


def test_starts_go_round_by_the_fewest_and_then_wait() -> None:
    strategy = built("top_two")
    assert strategy.propose(history({"a": [], "b": [], "c": []}), 5, ANY_RNG) == ["a", "b", "c", "a", "b"]
    now = history({"a": [0.5, 0.6], "b": [0.5], "c": [0.5, 0.6]}, pending=["a", "c"])
    assert strategy.propose(now, 5, ANY_RNG) == ["b", "b"]
    waiting = history({**THREE_EACH, "b": [0.5, 0.6]}, pending=["b"])
    assert strategy.propose(waiting, 5, ANY_RNG) == []
    assert strategy.recommend(waiting).stopped_by is None


def test_stops_by_confidence_when_all_starts_have_finished() -> None:
    strategy = built("top_two")
    assert strategy.recommend(history({**prefix(3), "b": CLEAR["b"][:2]}, pending=["b"])).stopped_by is None
    decision = strategy.recommend(history(prefix(3)))
    assert (decision.best, decision.stopped_by) == ("a", "confidence")
    longer = built("top_two", num_starts=4)
    waiting = longer.recommend(history(prefix(3)))
    assert (waiting.best, waiting.confidence, waiting.stopped_by) == ("a", decision.confidence, None)
    assert longer.recommend(history(CLEAR)).stopped_by == "confidence"


def test_a_margin_adds_to_the_probability_of_the_leader() -> None:
    decision = built("top_two", margin=0.1).recommend(history({"a": [0.5] * 3, "b": [0.55] * 3, "c": [0.55] * 3}))
    assert decision.prob_within_margin == {"a": 1, "b": 1, "c": 1}
    assert (decision.best, decision.prob_best) == ("b", {"a": 0, "b": 0.5, "c": 0.5})


def test_check_names_rule_and_value() -> None:
    for options, named in (
        ({"confidence": 1.0}, "confidence .* 1.0"),
        ({"confidence": float("nan")}, "confidence .* NaN"),
        ({"margin": -0.01}, "margin .* -0.01"),
        ({"min_runs": -1}, "min_runs .* -1"),
        ({"margin": 0.01, "belief": "logit_student_t"}, "margin must be 0 .*LogitStudentT"),
        ({"num_starts": 2}, "num_starts must be at least 3 .*StudentT .* 2"),
        ({"max_evaluations": 11}, "max_evaluations must be at least 12, .* candidate 3 times .* 11"),
    ):
        with pytest.raises(ConfigError, match=named):
            built("top_two", **options).check(["a", "b", "c", "d"])  # type: ignore[arg-type]
    built("top_two", max_evaluations=12, margin=0.0, num_starts=3).check(["a", "b", "c", "d"])
    assert built("top_two").bounds(3) == (9, 150), "fifty for each by default"


CAREFUL = {"belief": "moderated_t", "stop": "early_looks"}


def test_a_winner_and_its_rival_need_enough_runs_for_the_rule() -> None:
    strategy = built("top_two", confidence=0.8, min_runs=7, **CAREFUL)
    early = {
        "a": [0.70, 0.71, 0.705, 0.70, 0.71, 0.70],
        "b": [0.68, 0.69, 0.68, 0.685, 0.69, 0.68],
        "c": [0.50, 0.51, 0.50],
    }
    decision = strategy.recommend(history(early))
    assert decision.confidence is not None and decision.confidence > 0.8
    assert (decision.stopped_by, decision.lacking) == (None, ("a", "b"))
    # Only the two that matter run, each up to seven, and no slot is filled beyond.
    proposed = strategy.propose(history(early), 9, np.random.default_rng(1))
    assert sorted(proposed) == ["a", "b"]
    assert strategy.propose(history(early, pending=["a"]), 3, np.random.default_rng(1)) == ["b"]
    enough = {**early, "a": [*early["a"], 0.70], "b": [*early["b"], 0.60]}
    assert strategy.recommend(history(enough)).stopped_by == "confidence"
    assert strategy.recommend(history({**enough, "b": early["b"]})).stopped_by is None
    assert strategy.bounds(3) == (17, 150)


def test_three_runs_begin_unless_the_user_or_a_belief_of_counts_says_otherwise() -> None:
    def starts(**options: Any) -> int:
        return cast(FixedConfidence, built("top_two", **options)).num_starts

    for belief, num_starts in (("student_t", 3), ("moderated_t", 3), ("dirichlet_f_measure", 1)):
        assert starts(belief=belief, stop="early_looks") == num_starts
    assert starts(**CAREFUL, num_starts=2) == starts(belief="moderated_t", stop="bayesian") == 2


def test_candidates_that_join_need_room_and_withdrawn_ones_do_not() -> None:
    now = history({"a": [0.5, 0.6, 0.7], "b": [0.4, 0.5, 0.6], "c": []})
    gone = history({"a": [0.5] * 3, "b": [0.4] * 3, "c": [0.4] * 3}, withdrawn=["c"])
    for name, limit, least in (
        # Six evaluations so far, and three starting evaluations of c.
        ("top_two", "max_evaluations", 9),
        # With 7, 7 // 3 = 2 evaluations of each: c lacks two and has room for one. With 8 it has room for two.
        ("non_adaptive_fb", "budget", 8),
        # Two rounds of three candidates: with 7, 7 // (3 * 2) = 1 evaluation of each in the first, and room for one.
        ("sequential_halving", "budget", 7),
    ):
        built(name, **{limit: least}).check_room(now)
        with pytest.raises(ConfigError, match=f"{limit} must be at least {least}\\b.*but is {least - 1}"):
            built(name, **{limit: least - 1}).check_room(now)
        built(name, budget=9, max_evaluations=9).check_room(gone)


def test_the_check_leaves_room_for_a_winner_and_a_rival_also_of_candidates_that_join() -> None:
    built("top_two", max_evaluations=30, min_runs=12, **CAREFUL).check(["a", "b", "c", "d"])
    with pytest.raises(ConfigError, match="at least 30, .* 12 runs each.* 29"):
        built("top_two", max_evaluations=29, min_runs=12, **CAREFUL).check(["a", "b", "c", "d"])
    # Eight so far, two to start c, and a and b lack four each of seven.
    now = history({"a": [0.5, 0.6, 0.5], "b": [0.4, 0.5, 0.4], "c": [0.3], "d": [0.5]}, removed=["d"])
    built("top_two", min_runs=7, max_evaluations=18, **CAREFUL).check_room(now)
    with pytest.raises(ConfigError, match="at least 18, .* 7 runs each.* 17"):
        built("top_two", min_runs=7, max_evaluations=17, **CAREFUL).check_room(now)


def test_removed_candidates_have_no_part_in_the_default_limit() -> None:
    strategy = cast(FixedConfidence, built("top_two"))
    scores = {"a": [0.5] * 3, "b": [0.4] * 3, "c": [0.4] * 4}
    # Fifty for each of three; or for each of two, whatever the third has taken.
    assert strategy.room(history(scores)) == strategy.room(history(scores, withdrawn=["c"])) == 150 - 10
    assert strategy.room(history(scores, removed=["c"])) == 100 - 6
    given = cast(FixedConfidence, built("top_two", max_evaluations=20))
    assert given.room(history(scores, removed=["c"])) == 20 - 10


def test_equal_differences_of_runs_that_vary_end_nothing() -> None:
    strategy = built("top_two", belief="moderated_t")
    rounded = {"a": [0.90, 0.95, 0.85], "b": [0.85, 0.90, 0.80]}
    decision = strategy.recommend(history(rounded))
    assert decision.stopped_by is None and decision.confidence == 0.5
    assert strategy.recommend(history({"a": [0.9] * 3, "b": [0.85] * 3})).stopped_by == "no_variation"
    rounded["a"][2] = 0.80
    assert strategy.recommend(history(rounded)).posterior.noise_sd > 0


def test_a_selection_that_ends_before_its_limit_gave_up() -> None:
    near = {"a": [0.60, 0.62, 0.64], "b": [0.58, 0.63, 0.65]}
    for limit, stopped_by, gave_up in ((6, "max_evaluations", False), (7, "max_evaluations", True), (100, None, False)):
        strategy = built("top_two", num_starts=3, max_evaluations=limit, confidence=0.95, stop="early_looks")
        decision = strategy.recommend(history(near))
        assert (decision.stopped_by, decision.gave_up) == (stopped_by, gave_up)
