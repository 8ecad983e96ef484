from typing import Dict, List, Optional

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.selection.metrics import Metric, check_metric_sign, constant_notes, scale_notes
from fiesta_allennlp.selection.options import option_words


@pytest.mark.parametrize(
    ("typed", "metric", "text"),
    [
        ("f1", Metric("f1"), "f1"),
        ("+loss", Metric("loss"), "loss"),
        ("-loss", Metric("loss", minimise=True), "loss (lower is better)"),
    ],
)
def test_the_sign_is_the_direction(typed: str, metric: Metric, text: str) -> None:
    assert Metric.parse(typed) == Metric.parse(metric.option_text) == metric
    assert (metric.display_name, metric.sign) == (text, -1 if typed == "-loss" else 1)


ERRORS = (
    "loss val_loss perplexity dev-PPL mean_absolute_error WER error.rate logloss val_log_loss valLoss top1_err "
    "test-mlogloss smape MSELoss cross_entropy loss2 losses"
)
SCORES = (
    "lossless_f1 answer_f1 terror cerebral_accuracy criterion blosser accuracy mAP50 f1-measure-overall tokens_per_s "
    "chrF2 negLogLoss R2Score"
)


@pytest.mark.parametrize("name", ERRORS.split(" "))
def test_an_error_without_a_sign_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--metric=-{name} "):
        check_metric_sign(name)
    for prefix in ("-", "+", "neg_"):
        check_metric_sign(prefix + name)


@pytest.mark.parametrize("name", [*SCORES.split(" "), "macro avg.f1-score"])
def test_a_name_that_only_looks_like_one_is_taken(name: str) -> None:
    check_metric_sign(name)


def test_a_value_with_a_minus_is_typed_so_that_argparse_takes_it() -> None:
    assert option_words("metric", "-loss") == ["--metric=-loss"]
    assert option_words("metric", "f1") == ["--metric", "f1"]


@pytest.mark.parametrize(
    ("scores", "named"),
    [
        ({"a": [0.80, 0.81], "b": [80.1]}, ["a with fractions such as 0.81", "b with percentages such as 80.1"]),
        ({"a": [0.80, 80.5]}, ["a with fractions such as 0.8", "a with percentages such as 80.5"]),
        ({"a": [-0.3], "b": [-25.0]}, ["a with", "b with"]),  # such as a correlation
        ({"a": [0.9, 1.3], "b": [1.1]}, None),  # losses
        ({"a": [0.80, 1.0], "b": [0.0]}, None),
        ({"a": [80.1, 0.0], "b": [3.0]}, None),  # percentages, one of a collapsed run
        ({"a": [0.9], "b": [120.0]}, None),  # a perplexity
        ({"a": []}, None),
    ],
)
def test_fractions_next_to_percentages_are_noted(scores: Dict[str, List[float]], named: Optional[List[str]]) -> None:
    notes = scale_notes(scores)
    assert [all(words in note for words in named or ()) for note in notes] == [True] * (named is not None)


@pytest.mark.parametrize(
    ("metric", "scores", "min_score", "named"),
    [
        ("error_rate", [0.45, 4.1], None, ["a", "b"]),
        ("wer", [0.45, 1.2], None, None),  # more words inserted than there are
        ("loss", [0.45, 4.1], None, None),
        ("accuracy", [81.0, 72.5], 0.5, ["--min-score with fractions such as 0.5", "a, b with percentages"]),
        ("accuracy", [0.81, 0.725], 50.0, ["a, b with fractions", "--min-score with percentages such as 50"]),
        ("accuracy", [0.81, 0.725], 0.5, None),
        ("perplexity", [0.8, 0.7], 100.0, None),  # a limit for runs that diverge
    ],
)
def test_error_rates_and_a_limit_on_another_scale_are_noted(
    metric: str, scores: List[float], min_score: Optional[float], named: Optional[List[str]]
) -> None:
    notes = scale_notes({name: [score] for name, score in zip("ab", scores, strict=True)}, metric, min_score=min_score)
    assert [all(words in note for words in named or ()) for note in notes] == [True] * (named is not None)


def test_equal_scores_of_a_candidate_are_noted() -> None:
    notes = constant_notes({"a": [0.0, 0.0, 0.0], "b": [0.5, 0.5, 0.6], "c": [0.7, 0.7], "d": []})
    assert len(notes) == 1 and "All 3 scores of a are 0." in notes[0]
