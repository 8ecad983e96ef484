"""Sources of scores: presets, and a table small enough to see every draw, as the score tells split and seed."""

from typing import Dict, List, Sequence, Tuple

import numpy as np
import pytest

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.tables.simulation.planning import NOISE_SD, SPLIT_SD
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, ScoreTable
from tests.score_tables import NOISY

NUM_SPLITS, NUM_SEEDS = 7, 3


def table(seeds: Sequence[int] = (NUM_SEEDS,) * NUM_SPLITS, names: str = "ab") -> ScoreTable:
    """Score 10 split + seed for every candidate, where split k has `seeds[k]` seeds."""
    rows = [(split, 10 * split + seed) for split, num_seeds in enumerate(seeds) for seed in range(num_seeds)]
    splits, scores = (np.array(column) for column in zip(*rows, strict=True))
    split_names = [f"s{k}" for k in range(len(seeds))]
    return ScoreTable("made.json", split_names, dict.fromkeys(names, splits), dict.fromkeys(names, scores))


def drawn(
    source: ScoreSource, *, shared: bool, replacement: bool = False, length: int = 50, seed: int = 0
) -> DrawnScores:
    rngs = {name: np.random.default_rng([seed, number]) for number, name in enumerate(source.true_means())}
    sampling = Sampling(shared, replacement, length)
    return source.fitted(sampling).draw(sampling, split_rng=np.random.default_rng([seed, 99]), score_rngs=rngs)


def asked(scores: DrawnScores, count: int) -> Dict[str, List[Tuple[Request, float]]]:
    """The first requests of every candidate, with their scores."""
    evaluations = {n: [scores.run(n, k) for k in range(count)] for n in scores.scores}
    return {name: [(e.request, e.score) for e in done] for name, done in evaluations.items()}


def test_shared_splits_are_shared_and_all_used_before_any_comes_again() -> None:
    requests = asked(drawn(table(), shared=True), NUM_SPLITS * NUM_SEEDS)
    for (first, score), (second, other) in zip(requests["a"], requests["b"], strict=True):
        assert first.split_seed == second.split_seed == score // 10 == other // 10
    for name in "ab":
        scores = [score for _, score in requests[name]]
        assert sorted(scores) == sorted(table().scores[name])
        for begin in range(0, len(scores), NUM_SPLITS):
            assert sorted(score // 10 for score in scores[begin : begin + NUM_SPLITS]) == list(range(NUM_SPLITS))
    assert [score for _, score in requests["a"]] != [score for _, score in requests["b"]]


def test_splits_come_in_another_order_in_every_repetition_and_pass() -> None:
    def splits(seed: int) -> List[int]:
        return [request.split_seed for request, _ in asked(drawn(table(), shared=True, seed=seed), 2 * NUM_SPLITS)["a"]]

    orders = [splits(seed)[begin : begin + NUM_SPLITS] for seed in (0, 1) for begin in (0, NUM_SPLITS)]
    assert len(set(map(tuple, orders))) == 4


def test_a_split_with_fewer_seeds_is_in_fewer_passes() -> None:
    requests = asked(drawn(table((1, 3, 2)), shared=True), 6)
    splits = [request.split_seed for request, _ in requests["a"]]
    assert splits == [request.split_seed for request, _ in requests["b"]]
    assert sorted(splits[:3]) == [0, 1, 2]
    assert sorted(splits[3:5]) == [1, 2]
    assert splits[5] == 1


def test_independent_splits_use_every_score_once_and_are_all_told_apart() -> None:
    requests = asked(drawn(table(), shared=False), NUM_SPLITS * NUM_SEEDS)
    assert len({request.split_seed for done in requests.values() for request, _ in done}) == 2 * NUM_SPLITS * NUM_SEEDS
    for name in "ab":
        assert sorted(score for _, score in requests[name]) == sorted(table().scores[name])
    assert [score for _, score in requests["a"]] != [score for _, score in requests["b"]]


@pytest.mark.parametrize("shared", [True, False])
def test_a_table_runs_out_and_with_replacement_it_goes_on(shared: bool) -> None:
    scores = drawn(table(), shared=shared)
    with pytest.raises(DataError, match="made.json: .*'b' ran out .* 21 .*--with-replacement"):
        scores.run("b", 21)
    requests = asked(drawn(table(), shared=shared, replacement=True, length=500), 500)
    for name in "ab":
        assert {score for _, score in requests[name]} == set(table().scores[name].tolist())
    pairs = zip(requests["a"], requests["b"], strict=True)
    same = [first.split_seed == second.split_seed for (first, _), (second, _) in pairs]
    assert all(same) if shared else not any(same)
    assert not shared or all(request.split_seed == score // 10 for request, score in requests["a"])
    alone = drawn(table(names="a"), shared=shared).scores["a"]
    assert alone.tolist() == scores.scores["a"].tolist(), "a candidate's scores do not depend on the others"


def test_shared_splits_need_equally_many_scores_and_others_are_left_out() -> None:
    one, other = table((3, 3, 3), "a"), table((3, 2, 3), "b")
    uneven = ScoreTable("made.csv", one.split_names, {**one.splits, **other.splits}, {**one.scores, **other.scores})
    common = uneven.fitted(Sampling(shared_splits=True, with_replacement=False, length=0))
    assert "the 2 of 3 splits" in common.notes[0] and common.notes[0].endswith("left out: s1.")
    assert common.true_means() == {"a": 11.0, "b": 11.0}
    assert {request.split_seed for request, _ in asked(drawn(uneven, shared=True), 6)["b"]} == {0, 2}
    apart = ScoreTable("made.csv", ["s", "t"], {"a": np.zeros(1, int), "b": np.ones(1, int)}, uneven.scores)
    with pytest.raises(DataError, match="made.csv: .* no split .* --splits independent"):
        apart.fitted(Sampling(shared_splits=True, with_replacement=False, length=0))
    assert len(asked(drawn(uneven, shared=False), 8)["b"]) == 8


LENGTH = 20_000


def test_scores_have_the_moments_that_they_should_and_correlate_on_shared_splits_alone() -> None:
    """Within five standard errors, of the mean, the standard deviation and the correlation."""
    sds = {name: 3 * NOISE_SD if name == "noisy" else NOISE_SD for name in NOISY.true_means()}
    for shared in (True, False):
        drawn_scores = drawn(NOISY, shared=shared, length=LENGTH)
        for name, mean in NOISY.true_means().items():
            expected = np.hypot(SPLIT_SD, sds[name])
            assert np.mean(drawn_scores.scores[name]) == pytest.approx(mean, abs=5 * expected / LENGTH**0.5)
            assert np.std(drawn_scores.scores[name]) == pytest.approx(expected, rel=5 / (2 * LENGTH) ** 0.5)
        correlation = SPLIT_SD**2 / (SPLIT_SD**2 + NOISE_SD**2) if shared else 0.0
        found = np.corrcoef(drawn_scores.scores["best"], drawn_scores.scores["third"])[0, 1]
        assert found == pytest.approx(correlation, abs=5 / LENGTH**0.5)
        assert (drawn_scores.splits["best"] == drawn_scores.splits["third"]).all() == shared
        assert len(set(drawn_scores.splits["best"].tolist())) == LENGTH
