import tempfile
from collections import Counter
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tdsa" / "restaurants.xml"


def words(instance, name):
    return " ".join(token.text for token in instance[name].tokens)


def texts(instance):
    return tuple(words(instance, name) for name in ("left", "target", "right"))


def test_every_term_is_cut_at_its_offsets():
    instances = list(SemEvalTdsaReader().read(FIXTURE))
    assert [(*texts(instance), instance["label"].label) for instance in instances] == [
        ("", "soup", "was cold but we adored the bread", "negative"),
        ("soup was cold but we adored the", "bread", "", "positive"),
        ("the", "wine list", "& the wine were n't great .", "neutral"),
        ("the wine list & the", "wine", "were n't great .", "negative"),
        ("a", "dress cod", "e , or so they say .", "neutral"),
        ("", "waiter", "", "positive"),
    ]
    assert all(words(instance, "text") == " ".join(filter(None, texts(instance))) for instance in instances)


def test_metadata_holds_sentence_and_offsets():
    instance = list(SemEvalTdsaReader().read(FIXTURE))[3]
    assert instance["metadata"].metadata == {
        "sentence_id": "twice",
        "target": "wine",
        "from": 20,
        "to": 24,
        "text": "The wine list & the wine weren't great.",
    }
    assert SemEvalTdsaReader.group_by in instance["metadata"].metadata


def test_conflict_target_words_and_case_are_kept_on_request():
    options = {"keep_conflict": True, "include_target": True, "lowercase": False}
    first, *_, conflict, _ = instances = list(SemEvalTdsaReader(**options).read(FIXTURE))
    assert (len(instances), conflict["label"].label) == (7, "conflict")
    assert texts(first) == ("Soup", "Soup", "Soup was cold but we adored the bread")
    assert words(first, "text") == "Soup was cold but we adored the bread"


def test_only_the_inputs_asked_for_are_made():
    params = Params({"type": "semeval_tdsa", "inputs": ["left", "right"], "tokenizer": "whitespace"})
    instance = next(iter(DatasetReader.from_params(params).read(FIXTURE)))
    assert set(instance.fields) == {"left", "right", "label", "metadata"}
    for inputs in (["left", "middle"], []):
        with pytest.raises(ConfigurationError, match="inputs must be some of"):
            SemEvalTdsaReader(inputs=inputs)


def test_target_is_found_where_it_occurs_once():
    instance = SemEvalTdsaReader().text_to_instance("We liked the beer.", "beer")
    assert texts(instance) == ("we liked the", "beer", ".")
    assert "label" not in instance.fields


@pytest.mark.parametrize(
    ("target", "offsets", "message"),
    [
        ("beer", {}, 'the target must occur once, but "beer" occurs 2 times in "Beer, beer or beer"'),
        ("", {}, '"" occurs 0 times'),
        ("beer", {"start": 6}, 'Give both "from" and "to" or neither, but got from=6, to=None'),
        ("beer", {"start": 5, "end": 9}, 'Characters 5 to 9 of "Beer, beer or beer" are " bee" but the target is'),
        (" ", {"start": 5, "end": 6}, 'The target " " of "Beer, beer or beer" contains no word'),
    ],
)
def test_unusable_targets_are_refused(target, offsets, message):
    with pytest.raises(DataError) as error:
        SemEvalTdsaReader().text_to_instance("Beer, beer or beer", target, **offsets)
    assert message in str(error.value)


TERM = '<aspectTerm term="soup" polarity="positive" from="4" to="8"/>'


def sentence(term=TERM, text="<text>The soup</text>", attributes='id="7"'):
    terms = f"<aspectTerms>\n{term}\n</aspectTerms>"
    return f"<sentences>\n<sentence {attributes}>\n{text}\n{terms}\n</sentence>\n</sentences>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (sentence().replace("</aspectTerms>", ""), " is not well-formed XML: mismatched tag: line 7, column 2"),
        (" \n", " is not well-formed XML: no element found"),
        ("<html>\n</html>", ": the root element must be <sentences> but is <html>"),
        ("<sentences></sentences>", " has no aspect term to learn from"),
        (sentence(attributes=""), ', sentence 1 of the file: <sentence> lacks the attribute "id"'),
        (sentence(text=""), ', sentence 1 ("7"): <sentence> lacks its <text>'),
        (sentence(TERM.replace('from="4"', "")), ", sentence 1 (\"7\"): <aspectTerm> lacks the attribute 'from'"),
        (sentence(TERM.replace("positive", "fine")), ', sentence 1 ("7"): polarity must be one of positive,'),
        (sentence(TERM.replace('to="8"', 'to="eight"')), '"from" and "to" must be whole numbers'),
        (sentence(TERM.replace('to="8"', 'to="9"')), '"soup" is not at the characters 4 to 9 of its text, which has 8'),
        (
            sentence(TERM.replace('from="4"', 'from="3"')),
            'at the characters 3 to 8 of its text, which has 8: there is " soup"',
        ),
        ('<?xml version="1.0" encoding="klingon"?>\n' + sentence(), "is not well-formed XML: unknown encoding"),
        (
            b'<?xml version="1.0" encoding="UTF-8"?>\n' + sentence(text="<text>Th\u00e9 soup</text>").encode("latin-1"),
            " is not well-formed XML: not well-formed (invalid token)",
        ),
    ],
)
def test_malformed_files_are_refused(tmp_path, content, message):
    path = tmp_path / "broken.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as error:
        list(SemEvalTdsaReader().read(path))
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"absent.xml cannot be read: No such file or directory"):
        list(SemEvalTdsaReader().read(tmp_path / "absent.xml"))


def test_a_file_in_another_encoding_is_read_as_it_says(tmp_path):
    path = tmp_path / "latin.xml"
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + sentence(text="<text>Thé soup</text>")
    path.write_bytes(text.encode("latin-1"))
    assert [words(instance, "text") for instance in SemEvalTdsaReader().read(path)] == ["thé soup"]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("Restaurants_Train_v2.xml", {"positive": 2164, "negative": 805, "neutral": 633, "conflict": 91}),
        ("Restaurants_Test_Gold.xml", {"positive": 728, "negative": 196, "neutral": 196, "conflict": 14}),
    ],
)
def test_official_counts(shared_data, name, counts):
    instances = list(SemEvalTdsaReader(keep_conflict=True).read(shared_data / "semeval14" / name))
    assert Counter(instance["label"].label for instance in instances) == counts


@settings(max_examples=80, deadline=None)
@given(data=some.data())
def test_a_file_with_anything_changed_is_read_or_refused_with_its_name(data):
    """Bytes of a good file cut out, put in or overwritten, anywhere."""
    content = FIXTURE.read_bytes()
    for _ in range(data.draw(some.integers(1, 3))):
        start = data.draw(some.integers(0, len(content)))
        end = start + data.draw(some.sampled_from([0, 1, 2, 30, len(content)]))
        put = data.draw(some.one_of(some.binary(max_size=4), some.sampled_from([b"<", b"&#0;", b'"', b"</text>"])))
        content = content[:start] + put + content[end:]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "changed.xml"
        path.write_bytes(content)
        try:
            for instance in SemEvalTdsaReader().read(path):
                metadata = instance["metadata"].metadata
                assert metadata["text"][metadata["from"] : metadata["to"]] == metadata["target"]
            return
        except DataError as error:
            message = str(error)
        assert str(path) in message
