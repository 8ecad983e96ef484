"""The sampling rule of a screening, on histories made by hand, and how runs are shared out."""

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import pytest

from fiesta_allennlp.beliefs import SplitPaired
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.searches.screener import MAX_INITIAL_FAILURES, Screener
from fiesta_allennlp.searches.search_settings import RunAllocation, SearchSettings, allocate_runs
from fiesta_allennlp.searches.searchers import GpEhvi, Points, Random, Searcher
from fiesta_allennlp.strategies import SequentialHalving
from tests.strategies.histories import history as of_scores

NAMES = tuple("abcdefghijkl")


def screener(configs: int, *, searcher: Optional[Searcher] = None, **kwargs: Any) -> Screener:
    inputs = np.linspace(0, 1, len(NAMES))[:, None]
    return Screener(searcher or Random(), Points(inputs), num_configs=configs, **kwargs)


def history(scores: Dict[str, float], **rest: Any) -> History:
    return of_scores({name: [scores[name]] if name in scores else [] for name in NAMES}, **rest)


def proposed(rule: Screener, known: History, slots: int = 1) -> List[str]:
    return rule.propose(known, slots, np.random.default_rng(0))


def test_no_config_runs_twice_and_only_so_many_are_started_as_are_left() -> None:
    known = history({"a": 1.0, "b": 2.0}, failed=["c", "d"], pending=["d", "e"])
    assert sorted(proposed(screener(12), known, 99)) == list("fghijkl")
    assert proposed(screener(5), known, 99) == []
    assert len(proposed(screener(7), known, 99)) == 2


@pytest.mark.parametrize(("sign", "best"), [(1, "b"), (-1, "c")])
def test_the_best_is_named_and_the_end_is_known(sign: int, best: str) -> None:
    known = history({"a": 1.0, "b": 2.0, "c": 0.5, "d": 2.0}, failed=["e"])
    decision = screener(5, sign=sign).recommend(known)
    assert (decision.best, decision.stopped_by) == (best, "budget")
    searched = screener(5, sign=sign).search_history(known)
    np.testing.assert_array_equal(searched.scores[:, 0], [sign * 1.0, sign * 2.0, sign * 0.5, sign * 2.0, np.nan])
    assert screener(6, sign=sign).recommend(known).stopped_by is None
    again = history({"a": 1.0}, failed=["b"], pending=["b"])  # a failure that is tried again is not over
    assert screener(2).recommend(again).stopped_by is None
    assert screener(2).search_history(again).seen == (0,)


def test_a_template_that_always_fails_ends_the_screening() -> None:
    assert screener(12).recommend(history({}, failed=NAMES[: MAX_INITIAL_FAILURES - 1])).stopped_by is None
    assert screener(12).recommend(history({}, failed=NAMES[:MAX_INITIAL_FAILURES])).stopped_by == "failures"
    assert screener(12).recommend(history({"l": 1.0}, failed=NAMES[:MAX_INITIAL_FAILURES])).stopped_by is None
    assert screener(3).recommend(history({}, failed=NAMES[:3])).stopped_by == "failures"


def timed(scores: Dict[str, Sequence[float]]) -> History:
    """Scores and seconds."""
    known = history({name: score for name, (score, _) in scores.items()})
    seconds = [seconds for _, seconds in scores.values()]
    evaluations = tuple(replace(e, seconds=s) for e, s in zip(known.evaluations, seconds, strict=True))
    return replace(known, evaluations=evaluations)


def test_the_front_comes_first_where_seconds_count_too() -> None:
    """c is beaten by b in both, e by a; of the others none beats another."""
    known = timed({"a": (0.9, 30), "b": (0.8, 10), "c": (0.7, 12), "d": (0.5, 5), "e": (0.85, 31)})
    rule = screener(9, searcher=GpEhvi(), minimises_seconds=True)
    assert rule.pareto_configs(known) == {"a", "b", "d"}
    assert rule.rank_configs(known) == ["a", "b", "d", "e", "c"]
    np.testing.assert_array_equal(rule.search_history(known).scores[:2], [[0.9, -30], [0.8, -10]])
    assert len(proposed(rule, known, 2)) == 2
    assert screener(9).rank_configs(known) == ["a", "e", "b", "c", "d"] and not screener(9).pareto_configs(known)


def test_shares_by_hand_can_be_taken_by_halving() -> None:
    expected = {12: (10, 2, 2), 60: (48, 4, 12), 120: (96, 8, 24), 240: (192, 8, 48), 480: (384, 16, 96)}
    assert {runs: allocate_runs(runs) for runs in expected} == {
        runs: RunAllocation(*share) for runs, share in expected.items()
    }
    for runs in range(12, 400):
        shares = allocate_runs(runs)
        assert shares.num_configs + shares.num_selection_runs == runs and shares.num_finalists < shares.num_configs
        names = [f"candidate-{number}" for number in range(shares.num_finalists)]
        SequentialHalving(belief=SplitPaired(), budget=shares.num_selection_runs).check(names)


def test_stages_that_do_not_go_together_are_refused() -> None:
    for settings, named in (
        ({"configs": 5, "points": "p.jsonl"}, "--points"),
        ({}, "--configs"),
        ({"runs": 24, "budget": 5}, "--budget"),
        ({"runs": 11}, "12"),
        ({"configs": 5, "finalists": 6}, "--finalists"),
        ({"configs": 5, "pool": 4}, "--pool must"),
        ({"configs": 5, "pool": 6, "points": "p.jsonl", "space": None}, "--pool is for"),
    ):
        with pytest.raises(ConfigError, match=named):
            SearchSettings(**{"template": "t.jsonnet", "space": "space.json", **settings})  # type: ignore[arg-type]
