import numpy as np
import pytest
import torch
from allennlp.data import Vocabulary
from allennlp.training.metrics import SpanBasedF1Measure

from fiesta_allennlp.tagging.encodings import SpanScores


def scores(predicted, gold, **options):
    metric = SpanScores(**options)
    metric([text.split() for text in predicted], [text.split() for text in gold])
    return metric.get_metric()


def test_scores_by_hand():
    gold = ["B-PER I-PER O B-LOC", "O B-ORG O"]
    predicted = ["B-PER I-PER O B-ORG", "B-PER B-ORG I-ORG"]
    # 3 true spans, 4 guessed ones, of which the first PER is right; 4 of 7 tags are right.
    assert scores(predicted, gold) == pytest.approx(
        {"accuracy": 4 / 7, "precision-overall": 1 / 4, "recall-overall": 1 / 3, "f1-measure-overall": 2 / 7}
    )


def test_without_spans_everything_is_0_and_finite():
    found = scores(["O O"], ["O O"])
    assert found == {"accuracy": 1.0, "precision-overall": 0.0, "recall-overall": 0.0, "f1-measure-overall": 0.0}
    assert SpanScores().get_metric()["accuracy"] == 0.0


def test_a_span_that_nothing_opens_counts():
    assert scores(["O I-PER"], ["O B-PER"])["f1-measure-overall"] == 1.0
    assert scores(["O L-PER"], ["O U-PER"])["f1-measure-overall"] == 1.0
    assert scores(["B-PER I-LOC"], ["B-PER O"])["precision-overall"] == 0.5


def test_reset_forgets():
    metric = SpanScores()
    metric([["O"]], [["B-PER"]])
    assert metric.get_metric(reset=True)["accuracy"] == 0.0
    metric([["B-PER"]], [["B-PER"]])
    assert metric.get_metric() == dict.fromkeys(metric.get_metric(), 1.0)


@pytest.mark.parametrize("encoding", ["BIO", "IOB1"])
def test_random_tags_score_as_allennlp_scores_them(encoding):
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    vocab = Vocabulary(tokens_to_add={"tags": names})
    rng = np.random.default_rng(2)
    mine, theirs = SpanScores(), SpanBasedF1Measure(vocab, label_encoding=encoding)
    for _ in range(40):
        gold, predicted = rng.integers(5, size=(2, 3, 8))
        predicted = np.where(rng.random(gold.shape) < 0.6, gold, predicted)
        mine(*([[names[tag] for tag in row] for row in tags] for tags in (predicted, gold)))
        theirs(torch.eye(5)[torch.from_numpy(predicted)], torch.from_numpy(gold))
    expected = {name: value for name, value in theirs.get_metric().items() if name.endswith("overall")}
    found = mine.get_metric()
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert 0.1 < found["f1-measure-overall"] < 0.9
