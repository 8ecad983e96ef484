from collections import Counter
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.semeval_tdsa import SemEvalTdsaReader, WordTokenizer

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


def test_metadata_holds_sentence_and_offsets_and_a_target_that_occurs_once_is_found():
    instance = list(SemEvalTdsaReader().read(FIXTURE))[3]
    text = "The wine list & the wine weren't great."
    expected = {"sentence_id": "twice", "target": "wine", "from": 20, "to": 24, "text": text}
    assert instance["metadata"].metadata == expected
    assert SemEvalTdsaReader.group_by in instance["metadata"].metadata
    instance = SemEvalTdsaReader().text_to_instance("We liked the beer.", "beer")
    assert texts(instance) == ("we liked the", "beer", ".")
    assert "label" not in instance.fields


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
        with pytest.raises(ConfigurationError, match="'inputs' must be"):
            SemEvalTdsaReader(inputs=inputs)


@pytest.mark.parametrize(
    ("target", "offsets", "named"),
    [
        ("beer", {}, "'beer' must occur"),
        ("beer", {"start": 6}, "from=6, to=None"),
        ("beer", {"start": 5, "end": 9}, "characters 5 to 9 .*' bee'"),
        (" ", {"start": 5, "end": 6}, "contains no words"),
    ],
)
def test_unusable_targets_are_refused(target, offsets, named):
    with pytest.raises(DataError, match=named):
        SemEvalTdsaReader().text_to_instance("Beer, beer or beer", target, **offsets)


TERM = '<aspectTerm term="soup" polarity="positive" from="4" to="8"/>'


def sentence(term=TERM, text="<text>The soup</text>", attributes='id="7"'):
    terms = f"<aspectTerms>\n{term}\n</aspectTerms>"
    return f"<sentences>\n<sentence {attributes}>\n{text}\n{terms}\n</sentence>\n</sentences>"


def changed(before, after):
    return sentence(TERM.replace(before, after))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (sentence().replace("</aspectTerms>", ""), "XML: mismatched tag: line 7"),
        (sentence(text="<text>The&#0; soup</text>"), "XML: reference"),
        ('<?xml version="1.0" encoding="klingon"?>\n' + sentence(), "XML: unknown encoding"),
        ("<html>\n</html>", "<sentences> but is <html>"),
        (sentence(text=""), r"sentence 1 \('7'\): <sentence> has no <text>"),
        (changed('from="4"', ""), "<aspectTerm> has no attribute 'from'"),
        (changed("positive", "fine"), "'polarity' .*'fine'"),
        (changed('to="8"', 'to="eight"'), "'from' and 'to' must"),
        (changed('from="4"', 'from="3"'), r"sentence 1 \('7'\): characters 3 to 8 .*' soup'"),
    ],
)
def test_malformed_and_missing_files_are_refused(tmp_path, content, named):
    path = tmp_path / "broken.xml"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(DataError, match=f"^{path}.*{named}"):
        list(SemEvalTdsaReader().read(path))
    with pytest.raises(DataError, match="absent.xml .*No such file.*FIESTA_DATA"):
        list(SemEvalTdsaReader().read(tmp_path / "absent.xml"))
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + sentence(text="<text>Thé soup</text>")
    path.write_text(text, encoding="latin-1")  # which it says
    assert [words(instance, "text") for instance in SemEvalTdsaReader().read(path)] == ["thé soup"]


def test_official_counts(shared_data):
    for name, counts in (
        ("Restaurants_Train_v2.xml", {"positive": 2164, "negative": 805, "neutral": 633, "conflict": 91}),
        ("Restaurants_Test_Gold.xml", {"positive": 728, "negative": 196, "neutral": 196, "conflict": 14}),
    ):
        instances = SemEvalTdsaReader(keep_conflict=True).read(shared_data / "semeval14" / name)
        assert Counter(instance["label"].label for instance in instances) == counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We don't, can't, won't", "We do n't , ca n't , wo n't"),
        ("It's theirs; they'll say I'm 'fine'", "It 's theirs ; they 'll say I 'm ' fine '"),
        ("a top-notch, well-done-ish -dish-", "a top-notch , well-done-ish - dish -"),
        ("$9.99 at 5pm... really -- no!!", "$ 9 . 99 at 5pm ... really -- no ! !"),
        ("  \n ", ""),
    ],
)
def test_words_know_their_places(text, expected):
    tokens = WordTokenizer().tokenize(text)
    assert [token.text for token in tokens] == expected.split()
    assert all(text[token.idx : token.idx + len(token.text)] == token.text for token in tokens)
