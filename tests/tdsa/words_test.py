import pytest

from fiesta_allennlp.tdsa.words import WordTokenizer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("We don't, can't, won't", "We do n't , ca n't , wo n't"),
        ("It's theirs; they'll say I'm 'fine'", "It 's theirs ; they 'll say I 'm ' fine '"),
        ("a top-notch, well-done-ish -dish-", "a top-notch , well-done-ish - dish -"),
        ("$9.99 at 5pm... really -- no!!", "$ 9 . 99 at 5pm ... really -- no ! !"),
        ("crème brûlée", "crème brûlée"),
        ("", ""),
        ("  \n ", ""),
    ],
)
def test_words(text, words):
    assert [token.text for token in WordTokenizer().tokenize(text)] == words.split()


def test_every_token_knows_its_place():
    text = "They didn't, well-meant; it's 5..."
    for token in WordTokenizer().tokenize(text):
        assert text[token.idx : token.idx + len(token.text)] == token.text
