import numpy as np
import pytest

from fiesta_allennlp.core.seeding import (
    REPLAY_SCORES_STREAM,
    candidate_key,
    make_request,
    replay_rng,
    split_seed,
    strategy_rng,
)

SEED = 2**100 + 12345


def test_a_candidate_key_is_the_beginning_of_a_hash() -> None:
    # sha256("a") begins with ca 97 81 12.
    assert candidate_key("a") == 0x128197CA


def test_the_seeds_of_a_request_never_change() -> None:
    # Written down runs are repeated from these: a change here breaks every run directory there is.
    words = np.random.SeedSequence(7, spawn_key=(1, candidate_key("tdlstm"), 3)).generate_state(3, np.uint32)
    made = make_request(7, "tdlstm", 3, shared_splits=True)
    assert [made.random_seed, made.numpy_seed, made.pytorch_seed] == [int(word) >> 1 for word in words]
    words = np.random.SeedSequence(SEED, spawn_key=(0, 0, 4)).generate_state(1, np.uint32)
    assert split_seed(SEED, 4) == int(words[0]) >> 1


def test_no_two_seeds_are_equal() -> None:
    made = [make_request(SEED, name, k, shared_splits=False) for name in "abcd" for k in range(50)]
    seeds = [seed for r in made for seed in (r.split_seed, r.random_seed, r.numpy_seed, r.pytorch_seed)]
    assert len(set(seeds)) == len(seeds)
    assert made[0].split_seed == split_seed(SEED, 0, "a")
    assert make_request(SEED, "a", 5, shared_splits=True).split_seed == split_seed(SEED, 5)
    assert min(seeds) >= 0 and max(seeds) < 2**31, "as NumPy, PyTorch and JSON need them"


@pytest.mark.parametrize("num_reserved", [0, 9])
def test_the_strategy_draws_the_same_after_a_resume_and_anew_after_each_reservation(num_reserved: int) -> None:
    first, again, later = (strategy_rng(SEED, n).random(5) for n in (num_reserved, num_reserved, num_reserved + 1))
    assert first.tolist() == again.tolist()
    assert not np.isin(first, later).any()


def test_a_replays_generator_is_the_one_that_numpy_gives_for_its_key() -> None:
    for name, key in ((None, 0), ("tdlstm", candidate_key("tdlstm"))):
        sequence = np.random.SeedSequence(SEED, spawn_key=(REPLAY_SCORES_STREAM, key, 12))
        made = replay_rng(SEED, REPLAY_SCORES_STREAM, 12, name)
        assert made.random() == np.random.default_rng(sequence).random()
