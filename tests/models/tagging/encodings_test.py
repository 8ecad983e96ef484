import numpy as np
import pytest
from allennlp.data.dataset_readers.dataset_utils.span_utils import (
    bio_tags_to_spans,
    bioul_tags_to_spans,
    iob1_tags_to_spans,
    to_bioul,
)

from fiesta_allennlp.models.tagging.tagged_columns import Span, SpanScores, first_error, spans_of, tags_of

TO_SPANS = {"BIO": bio_tags_to_spans, "IOB1": iob1_tags_to_spans, "BIOUL": bioul_tags_to_spans}

ONE_SENTENCE = {
    "IOB1": "O I-PER I-PER B-PER I-LOC O I-ORG",
    "BIO": "O B-PER I-PER B-PER B-LOC O B-ORG",
    "BIOUL": "O B-PER L-PER U-PER U-LOC O U-ORG",
}
"""The same spans in each encoding."""
SPANS = [Span("PER", 1, 2), Span("PER", 3, 3), Span("LOC", 4, 4), Span("ORG", 6, 6)]


@pytest.mark.parametrize("encoding", ONE_SENTENCE)
def test_spans_and_tags_by_hand(encoding):
    tags = ONE_SENTENCE[encoding].split()
    assert first_error(tags, encoding) is None
    assert spans_of(tags) == SPANS
    assert encoding == "IOB1" or tags_of(SPANS, 7, encoding) == tags
    assert spans_of(["U-A", "I-A", "L-A", "I-A"]) == [Span("A", 0, 0), Span("A", 1, 2), Span("A", 3, 3)], "U and L end"
    assert spans_of(["B", "I", "O", "B"]) == [Span("", 0, 1), Span("", 3, 3)], "spans need no label"
    assert tags_of([Span("", 0, 1)], 3, "BIOUL") == ["B", "L", "O"]


@pytest.mark.parametrize(
    ("tags", "encoding", "position", "named"),
    [
        ("O I-PER", "BIO", 1, "'I-PER' after 'O'"),
        ("I-PER", "BIO", 0, "'I-PER' at the beginning of a sentence"),
        ("B-PER O", "BIOUL", 1, "'O' after 'B-PER'"),
        ("O B-PER", "BIOUL", 1, "'B-PER' at the end of a sentence"),
        ("O S-PER", "BIOUL", 1, "'S-PER' is not a valid BIOUL tag"),
        ("O O-PER", "IOB1", 1, "'O-PER'"),
    ],
)
def test_the_first_wrong_tag_is_told(tags, encoding, position, named):
    where, reason = first_error(tags.split(), encoding)
    assert where == position and named in reason
    assert first_error([], encoding) is None


def random_tags(rng, encoding):
    letters = {"IOB1": ["O", "I", "B"], "BIO": ["O", "B", "I"], "BIOUL": ["O", "B", "I", "L", "U"]}[encoding]
    drawn = [(rng.choice(letters), rng.choice(["PER", "LOC"])) for _ in range(rng.integers(1, 9))]
    return ["O" if letter == "O" else f"{letter}-{label}" for letter, label in drawn]


@pytest.mark.parametrize("encoding", TO_SPANS)
def test_random_sentences_have_the_spans_that_allennlp_finds(encoding):
    rng = np.random.default_rng(5)
    num_right = 0
    for _ in range(1000):
        tags = random_tags(rng, encoding)
        is_right = first_error(tags, encoding) is None
        num_right += is_right
        if is_right or encoding != "BIOUL":  # in which AllenNLP refuses wrong tags
            expected = {Span(label, *ends) for label, ends in TO_SPANS[encoding](tags)}
            assert set(spans_of(tags)) == expected, tags
        if is_right and encoding != "BIOUL":
            assert tags_of(spans_of(tags), len(tags), "BIOUL") == to_bioul(tags, encoding)
        if is_right and encoding != "IOB1":
            assert tags_of(spans_of(tags), len(tags), encoding) == tags
    assert num_right > 50


def test_scores_by_hand():
    """Without spans everything is 0 and finite; a span that nothing opens counts."""
    names = ("accuracy", "precision-overall", "recall-overall", "f1-measure-overall")
    for predicted, gold, expected in (
        ("O O", "O O", (1, 0, 0, 0)),
        ("O L-PER", "O U-PER", (1 / 2, 1, 1, 1)),
        ("B-PER I-LOC", "B-PER O", (1 / 2, 1 / 2, 1, 2 / 3)),
    ):
        metric = SpanScores()
        metric([predicted.split()], [gold.split()])
        assert metric.get_metric(reset=True) == pytest.approx(dict(zip(names, expected, strict=True)))
        assert metric.num_words == 0
