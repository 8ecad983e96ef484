"""Sentences about the results of selections."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional

from fiesta_allennlp import report
from fiesta_allennlp.documents.document_selection import DocumentsResult, SystemResult
from fiesta_allennlp.reports.progress import read_status
from fiesta_allennlp.reports.words import selection_in_words
from tests.selections import write_selection


def entry(name: str, measure: Optional[float], num_documents: int = 2, **options: Any) -> SystemResult:
    prob_best = None if "state" in options else 0.25
    options = {"num_queries": 0, "cost": 0.0, **options}
    return SystemResult(name, measure=measure, num_documents=num_documents, prob_best=prob_best, **options)


def ended(best: str, *systems: SystemResult, strategy: Any = None) -> DocumentsResult:
    """A selection whose two documents ran out."""
    about = {"strategy": strategy or {"type": "top_two"}, "documents": {"num_documents": 2, "batch_size": 1}}
    return DocumentsResult(best, "documents", "accuracy", systems, **about)


def in_lines(result: DocumentsResult) -> str:
    return "\n".join(selection_in_words(result))


def test_a_selection_whose_documents_ran_out_says_so() -> None:
    a = entry("a", 1.0, num_evaluations=2)
    text = in_lines(ended("a", a, entry("b", 0.5)))
    assert "Open after 2" in text and "no document is left" in text and "Leading: a" in text


def test_an_open_selection_offers_the_set_first() -> None:
    candidates = [replace(entry(name, 0.8), prob_best=prob) for name, prob in (("a", 0.6), ("b", 0.39), ("c", 0.01))]
    text = in_lines(replace(ended("a", *candidates), stopped_by="max_evaluations"))
    offers = ["Open after", "a or b is the best with probability 0.990.", "Leading: a (P(best) 0.600)"]
    places = [text.index(offer) for offer in offers]
    assert places == sorted(places)


def test_an_open_selection_says_what_is_missing() -> None:
    def words(probability: float = 0.8, **facts: Any) -> str:
        a = replace(entry("a", 0.8), prob_within_margin=probability)
        return in_lines(replace(ended("a", a, entry("b", 0.7)), stopped_by="max_evaluations", **facts))

    assert "--max-evaluations was reached." in words()
    assert "P(best) is below the target 0.95: " in words()
    assert "stopping rule is not met: a margin" in words(0.96)
    missing = words(0.96, lacking={"b": 2, "a": 1})
    assert re.search("b needs at least 2 .*a needs at least 1 ", missing) and "a margin" not in missing
    given_up = words(gave_up=True)
    assert "too few runs" in given_up and "not have decided" in given_up


def test_a_budget_on_official_splits_says_who_is_ahead(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.9, 0.85, 0.85], "b": [0.6, 0.7, 0.65, 0.65], "c": [0.1, 0.2, 0.1, 0.2]}
    choice: Dict[str, Any] = {"confidence": None, "max_evaluations": None, "strategy": "non_adaptive_fb"}
    write_selection(tmp_path, scores, splits="official", budget=14, **choice).close()
    told = " ".join(report(tmp_path).decision)
    assert re.search(r"a leads b by 0\.2 .*0\.032, t 6\.19 ", told)
    assert report(tmp_path).decision[1] in " ".join(read_status(tmp_path).sentences)
    assert [candidate.name for candidate in report(tmp_path).result.ranked] == ["a", "b", "c"]
