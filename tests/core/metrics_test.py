import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import Metric, check_metric_sign
from fiesta_allennlp.core.options import option_words


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
    "test-mlogloss smape MSELoss cross_entropy loss2 losses inference_time train_seconds "
    "nlls negative_log_likelihood edit_distance kl_div"
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


def test_a_negative_log_likelihood_is_no_negated_error() -> None:
    with pytest.raises(ConfigError, match="--metric=-val_neg_log_likelihood "):
        check_metric_sign("val_neg_log_likelihood")
