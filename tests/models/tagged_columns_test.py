from collections import Counter
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.tagged_columns import (
    Span,
    SpanScores,
    TaggedColumnsReader,
    first_error,
    spans_of,
    tags_of,
)

SMALL = Path(__file__).parents[1] / "fixtures" / "tagging" / "small.conll"

FOUR_COLUMNS = """-DOCSTART- -X- -X- O

Ann NNP I-NP I-PER
sleeps VBZ I-VP O

Bo NNP I-NP I-PER
-DOCSTART- -X- -X- O
In IN I-PP O
Rome NNP I-NP I-LOC
"""


def read(text, tmp_path, **options):
    path = tmp_path / "file.conll"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return list(TaggedColumnsReader(**options).read(path))


def pairs(instance):
    return list(zip(instance["metadata"]["words"], instance["tags"].labels, strict=True))


def documents(instances):
    return [instance["metadata"]["document"] for instance in instances]


def test_words_and_tags_of_the_small_file():
    instances = list(TaggedColumnsReader(encoding="IOB1", document_prefix="-DOCSTART-").read(SMALL))
    assert len(instances) == 10
    assert pairs(instances[0]) == [("Ann", "I-PER"), ("Lee", "I-PER"), ("met", "O"), ("Bo", "I-PER"), (".", "O")]
    assert [token.text for token in instances[0]["tokens"]] == instances[0]["metadata"]["words"]
    assert len(set(documents(instances))) == 4
    untagged = TaggedColumnsReader().text_to_instance(["Ann", "sleeps"])
    assert set(untagged.fields) == {"tokens", "metadata"}
    assert untagged["metadata"]["words"] == ["Ann", "sleeps"]


def test_a_hash_begins_comments_and_a_separator_keeps_the_spaces_in_words_on_request(tmp_path):
    text = "# O\nAnn B-PER\n"
    assert pairs(read(text, tmp_path)[0]) == [("#", "O"), ("Ann", "B-PER")]
    assert pairs(read(text, tmp_path, comment_prefix="#")[0]) == [("Ann", "B-PER")]
    assert pairs(read("New York\tB-LOC\n\t\nO\tO\n", tmp_path, separator="\t")[0]) == [("New York", "B-LOC")]


def test_any_two_columns(tmp_path):
    chunks = read(FOUR_COLUMNS, tmp_path, tag_column=2, encoding="IOB1", document_prefix="-DOCSTART-")
    assert pairs(chunks[0]) == [("Ann", "I-NP"), ("sleeps", "I-VP")]
    pos = read(FOUR_COLUMNS, tmp_path, tag_column=1, encoding=None, document_prefix="-DOCSTART-")
    assert pairs(pos[2]) == [("In", "IN"), ("Rome", "NNP")]
    swapped = read("B-PER Ann\n", tmp_path, token_column=-1, tag_column=0)
    assert pairs(swapped[0]) == [("Ann", "B-PER")]
    (instance,) = read("Ann I-PER\nLee I-PER\nBo B-PER\n", tmp_path, encoding="IOB1", convert_to="BIOUL")
    assert instance["tags"].labels == ["B-PER", "L-PER", "U-PER"]


def test_only_spaces_and_tabs_are_white_space_and_a_mark_of_the_byte_order_is_no_letter(tmp_path):
    text = "\ufeffa\u00a0b \t O\r\nc\u2028d O\r\n \t\r\ne O"
    instances = read(text, tmp_path)
    assert [instance["metadata"]["words"] for instance in instances] == [["a\u00a0b", "c\u2028d"], ["e"]]


def test_sentences_between_document_lines_are_one_document_and_without_those_equal_texts_are(tmp_path):
    first, second, third = documents(read(FOUR_COLUMNS, tmp_path, encoding="IOB1", document_prefix="-DOCSTART-"))
    assert first == second != third
    text = "so true O\nAnn true B-PER\n\nBo x O\n\nso true O\nAnn true O\n"
    first, second, third = documents(read(text, tmp_path, document_prefix="-DOCSTART-"))
    assert first == third != second


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        ("Ann O\n\nBo O\nLee I-PER\n", {}, "line 4, .*'Lee': BIO .* 'I-PER' after 'O'"),
        ("Ann B-PER\n\nLee O\n", {"encoding": "BIOUL"}, "line 1, .*'Ann': BIOUL .* 'B-PER' at the end"),
        ("Ann O\nLee\n", {}, r"line 2: expected 2, .* found 1: \['Lee'\]"),
        ("Ann O\n", {"tag_column": 3}, "line 1: .* 4 columns .* 2"),
        ("Ann\tO\n\tO\n", {"separator": "\t"}, "line 2: empty"),
        ("\n \n", {}, "no sentences"),
        (b"Ann O\nB\xe9 O\n", {}, "line 2: not UTF-8"),
    ],
)
def test_a_wrong_or_missing_file_is_refused_with_its_line(tmp_path, text, options, named):
    with pytest.raises(DataError, match=f"^{tmp_path / 'file.conll'}.*{named}"):
        read(text, tmp_path, **options)
    with pytest.raises(DataError, match=r"none\.conll cannot be read"):
        list(TaggedColumnsReader().read(tmp_path / "none.conll"))


def test_unknown_settings_are_refused():
    for name, value in (("encoding", "IOB2"), ("convert_to", "IOB1")):
        with pytest.raises(ConfigurationError, match=f"'{name}'"):
            DatasetReader.from_params(Params({"type": "tagged_columns", name: value}))
    with pytest.raises(ConfigurationError, match="'convert_to' .*'encoding'"):
        TaggedColumnsReader(encoding=None, convert_to="BIO")


def test_published_counts(shared_data):
    """WikiGold's are tested with the copy that comes with this package."""
    instances = list(TaggedColumnsReader().read(shared_data / "tagging" / "wnut17" / "wnut17train.conll"))
    tags = Counter(tag[0] for instance in instances for tag in instance["tags"].labels)
    assert (len(instances), sum(tags.values()), tags["B"]) == (3394, 62730, 1975)
    assert len(set(documents(instances))) == 3291


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
    assert spans_of(["B", "I", "O", "I"]) == [Span("", 0, 1), Span("", 3, 3)], "spans need no label"
    assert tags_of([Span("", 0, 1)], 3, "BIOUL") == ["B", "L", "O"]


@pytest.mark.parametrize(
    ("tags", "encoding", "position", "named"),
    [
        ("I-PER", "BIO", 0, "'I-PER' at the beginning"),
        ("B-PER O", "BIOUL", 1, "'O' after 'B-PER'"),
        ("O S-PER", "BIOUL", 1, "'S-PER' is not"),
        ("O O-PER", "IOB1", 1, "'O-PER'"),
    ],
)
def test_the_first_wrong_tag_is_told(tags, encoding, position, named):
    where, reason = first_error(tags.split(), encoding)
    assert where == position and named in reason
    assert first_error([], encoding) is None


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
