"""Writes the sample corpus of `data/sample`: restaurant opinions in SemEval-2014 XML, and word vectors for them.

Every sentence is put together from the phrases below, so the corpus is free of anybody's rights. The same seed
gives the same bytes: `python scripts/make_sample.py` leaves a clean checkout clean.
"""

import argparse
import math
import random
from collections import Counter
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

SEED = 2019
NUM_TRAIN, NUM_TEST, NUM_UNLABELLED = 420, 120, 6000
DIMENSION, WINDOW = 25, 3
LABEL_NOISE = 0.04
POLARITIES = ("positive", "negative", "neutral")


def listed(words: str) -> List[str]:
    """The words and phrases between the commas."""
    return words.split(", ")


TARGETS = listed(
    "soup, bread, waiter, waitress, terrace, wine list, house wine, lentil stew, lamb, dumplings, fish of the "
    "day, cheese board, lemon tart, coffee, music, view, bill, menu, kitchen, chef, owner, bartender, tables, "
    "chairs, prices, portions, apple pie, pumpkin ravioli, salad, dressing, noodles, beer, cocktails, lunch "
    "special, brunch, bathroom, candles, garden, garlic prawns, mushroom risotto, pancakes, hot chocolate, "
    "service, parking, opening hours"
)
WORDS: Dict[str, List[str]] = {
    "good": listed(
        "wonderful, superb, lovely, charming, splendid, perfect, fresh, generous, tasty, first-rate, memorable, "
        "fabulous, excellent, delightful, pleasant, brilliant, gorgeous, divine"
    ),
    "bad": listed(
        "awful, dreadful, stale, bland, rude, tiny, overpriced, soggy, dismal, terrible, horrid, burnt, "
        "second-rate, dirty, forgettable, disappointing, tired, sad"
    ),
    "like": ["loved", "adored", "enjoyed", "praised", "treasured"],
    "hate": ["hated", "loathed", "disliked", "regretted", "dreaded"],
    "very": ["really", "so", "quite", "very", "truly", "rather"],
    "who": ["we", "i", "my sister", "our friends", "everybody", "the neighbours"],
    "fact": ["ordered", "asked about", "saw", "shared", "waited for", "talked about", "noticed", "tried"],
}
CLAUSES: Dict[str, List[str]] = {
    "positive": [
        "the {t} was {good}",
        "the {t} was {very} {good}",
        "{good} {t}",
        "{who} {like} the {t}",
        "the {t} was not {bad} at all",
        "nobody {hate} the {t}",
        "there was nothing {bad} about the {t}",
        "the {t} could not have been more {good}",
    ],
    "negative": [
        "the {t} was {bad}",
        "the {t} was {very} {bad}",
        "{bad} {t}",
        "{who} {hate} the {t}",
        "the {t} was not {good} at all",
        "nobody {like} the {t}",
        "there was nothing {good} about the {t}",
        "the {t} could not have been more {bad}",
    ],
    "neutral": [
        "{who} {fact} the {t}",
        "{who} {fact} the {t} first",
        "the {t} was near the door",
        "they bring the {t} at the end",
        "there is also the {t}",
        "{who} sat down before the {t} was there",
        "the {t} was like last year",
    ],
}
AMBIGUOUS = ["the {t} was something else", "the {t} was quite an experience", "{who} will not forget the {t}"]
OPENERS = ["", "", "", "on a friday night , ", "to be fair , ", "after the theatre , ", "once more : ", "well , "]
CLOSERS: Dict[str, List[str]] = {
    "positive": ["", "", "", " , so we will be back", " , thank you", " , highly recommended"],
    "negative": ["", "", "", " , so never again", " , what a shame", " , stay away"],
    "neutral": ["", "", "", " , that is all", " , by the way", " , around eight"],
}
SAME, CONTRAST = [" and ", " , and ", " ; "], [" but ", " , but ", " while ", " , yet ", " ; "]


class Term(NamedTuple):
    """A target with its offsets in the sentence."""

    target: str
    polarity: str
    start: int
    end: int


class Sentence(NamedTuple):
    """A text with its targets from left to right."""

    text: str
    terms: List[Term]


def make_sentence(rng: random.Random) -> Sentence:
    """One to three clauses, each about a target of its own."""
    num_clauses = rng.choice([1, 2, 2, 2, 2, 3])
    targets: List[str] = []
    while len(targets) < num_clauses:
        target = rng.choice(TARGETS)
        if target not in targets:
            targets.append(target)
    text, previous = rng.choice(OPENERS), ""
    terms: List[Term] = []
    for target in targets:
        meant = rng.choice(POLARITIES)
        if terms:
            text += rng.choice(SAME if meant == previous else CONTRAST)
        polarity, clause = meant, rng.choice(CLAUSES[meant])
        if rng.random() < 0.05:
            polarity, clause = rng.choice(POLARITIES), rng.choice(AMBIGUOUS)
        before, after = (fill(rng, part) for part in clause.split("{t}"))
        text += before
        label = rng.choice(POLARITIES) if rng.random() < LABEL_NOISE else polarity
        terms.append(Term(target, label, len(text), len(text) + len(target)))
        text += target + after
        previous = meant
    text += rng.choice(CLOSERS[previous]) + rng.choice([" .", " .", " !"])
    return Sentence(text[0].upper() + text[1:], recased(text, terms))


def recased(text: str, terms: Sequence[Term]) -> List[Term]:
    """The terms, the first with a capital where it starts the sentence."""
    return [term._replace(target=term.target.capitalize()) if term.start == 0 else term for term in terms]


def fill(rng: random.Random, phrase: str) -> str:
    """The phrase with a word in place of each slot such as `{good}`."""
    for slot in WORDS:
        while "{" + slot + "}" in phrase:
            phrase = phrase.replace("{" + slot + "}", rng.choice(WORDS[slot]), 1)
    return phrase


def to_xml(sentences: Sequence[Sentence], prefix: str) -> str:
    """The sentences in the format of SemEval-2014 task 4."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<sentences>"]
    for number, sentence in enumerate(sentences, start=1):
        lines += [f'    <sentence id="{prefix}{number}">', f"        <text>{escape(sentence.text)}</text>"]
        lines.append("        <aspectTerms>")
        lines += [
            f"            <aspectTerm term={quoteattr(term.target)} polarity={quoteattr(term.polarity)}"
            f' from="{term.start}" to="{term.end}"/>'
            for term in sentence.terms
        ]
        lines += ["        </aspectTerms>", "    </sentence>"]
    return "\n".join([*lines, "</sentences>", ""])


def word_vectors(texts: Sequence[List[str]]) -> Dict[str, np.ndarray]:
    """Positive pointwise mutual information of words and their neighbours, cut to `DIMENSION` singular vectors."""
    counts = Counter(word for words in texts for word in words)
    vocabulary = sorted(counts)
    index = {word: row for row, word in enumerate(vocabulary)}
    pairs = np.zeros((len(vocabulary), len(vocabulary)))
    for words in texts:
        for position, word in enumerate(words):
            for other in words[max(0, position - WINDOW) : position]:
                pairs[index[word], index[other]] += 1
                pairs[index[other], index[word]] += 1
    expected = np.outer(pairs.sum(axis=1), pairs.sum(axis=0)) / pairs.sum()
    information = np.log(np.maximum(pairs, 1e-9) / np.maximum(expected, 1e-9)).clip(min=0.0) * (pairs > 0)
    left, singular, _ = np.linalg.svd(information)
    vectors = left[:, :DIMENSION] * np.sqrt(singular[:DIMENSION])
    # The sign of a singular vector is arbitrary: its largest entry is made positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(DIMENSION)])
    vectors /= math.sqrt(float((vectors**2).mean()) * 4)
    return dict(zip(vocabulary, vectors, strict=True))


def main(output: Path, seed: int = SEED) -> None:
    """Writes the two XML files and the vectors."""
    rng = random.Random(seed)
    train, test, unlabelled = (
        [make_sentence(rng) for _ in range(count)] for count in (NUM_TRAIN, NUM_TEST, NUM_UNLABELLED)
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / "restaurants_train.xml").write_text(to_xml(train, "train-"), encoding="utf-8", newline="\n")
    (output / "restaurants_test.xml").write_text(to_xml(test, "test-"), encoding="utf-8", newline="\n")
    vectors = word_vectors([sentence.text.lower().split() for sentence in train + test + unlabelled])
    lines = [f"{word} " + " ".join(f"{value:.3f}" for value in row) for word, row in vectors.items()]
    (output / f"vectors.{DIMENSION}d.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "data" / "sample")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    main(arguments.output, arguments.seed)
