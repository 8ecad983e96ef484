import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.metrics import Metric, check_sign
from fiesta_allennlp.selection.options import words_of


@pytest.mark.parametrize(
    ("typed", "metric", "text"),
    [
        ("f1", Metric("f1"), "f1"),
        ("+loss", Metric("loss"), "loss"),
        ("-loss", Metric("loss", minimise=True), "loss (lower is better)"),
    ],
)
def test_the_sign_is_the_direction(typed: str, metric: Metric, text: str) -> None:
    assert Metric.of(typed) == Metric.of(metric.typed) == metric
    assert (metric.text, metric.sign) == (text, -1 if typed == "-loss" else 1)


@pytest.mark.parametrize(
    "name", ["loss", "val_loss", "perplexity", "dev-PPL", "mean_absolute_error", "WER", "error.rate"]
)
def test_an_error_without_a_sign_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--metric=-{name} "):
        check_sign(name)
    check_sign(f"-{name}")
    check_sign(f"+{name}")


@pytest.mark.parametrize("name", ["lossless_f1", "answer_f1", "terror", "cerebral_accuracy", "criterion", "blosser"])
def test_a_name_that_only_looks_like_one_is_taken(name: str) -> None:
    check_sign(name)


def test_a_value_with_a_minus_is_typed_so_that_argparse_takes_it() -> None:
    assert words_of("metric", "-loss") == ["--metric=-loss"]
    assert words_of("metric", "f1") == ["--metric", "f1"]
