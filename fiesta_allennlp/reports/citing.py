"""The paragraph to copy into a paper about a selection, and the BibTeX entries of the works that it cites."""

import re
from typing import Dict, List, Tuple

from fiesta_allennlp.reports.formats import TEMPLATES, prose
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import changes
from fiesta_allennlp.version import __version__

FIESTA, RUSSO, JOURDAN = "moss-etal-2019-fiesta", "russo-2016-simple", "jourdan-etal-2022-top"
NADEAU, CORANI = "nadeau-bengio-2003-inference", "corani-benavoli-2015-bayesian"
KARNIN, HAFFARI, SOFTWARE = "karnin-etal-2013-almost", "haffari-etal-2017-efficient", "fiesta-allennlp"

CITED_AS = {
    FIESTA: "Moss et al., 2019",
    RUSSO: "Russo, 2016",
    JOURDAN: "Jourdan et al., 2022",
    KARNIN: "Karnin et al., 2013",
    HAFFARI: "Haffari et al., 2017",
    SOFTWARE: f"fiesta-allennlp {__version__}",
}
"""How a text refers to each work of `works.bib`, by the key of its entry."""

RULES: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "top_two": ("Top-two sampling", (RUSSO, JOURDAN)),
    "ttts": ("Top-two Thompson sampling", (RUSSO,)),
    "thompson": ("Thompson sampling", ()),
    "bts": ("Batch Thompson sampling", ()),
    "sequential_halving": ("Sequential halving", (KARNIN,)),
    "non_adaptive_fc": ("Equal allocation", ()),
    "non_adaptive_fb": ("Equal allocation", ()),
}
"""By registered name: the sampling rule at the beginning of a sentence, and its papers."""


def paragraph(report: Report) -> str:
    """Return a paragraph to copy; empty while there is nothing to report, and for a table of scores."""
    if report.best is None or report.running or not report.strategy or report.stopped_by in (None, "failures"):
        return ""
    rule, _ = RULES.get(report.strategy, (f"The sampling rule {report.strategy}", ()))
    cited = [CITED_AS[key] for key in _keys(report)]
    return prose("paragraph", report, rule=rule, cited=cited, notes=changes(report.changes, report.words))


def bibtex(report: Report) -> str:
    """Return the BibTeX entries of the works that `paragraph` cites."""
    works = (TEMPLATES / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    by_key = {re.split(r"[{,]", entry)[1]: entry for entry in works.strip().split("\n\n")}
    return "\n\n".join(by_key[key] for key in (*_keys(report), *_about_new_data(report)))


def _keys(report: Report) -> List[str]:
    _, works = RULES.get(report.strategy, ("", ()))
    return [FIESTA, *works, *([HAFFARI] if report.by_documents else []), SOFTWARE]


def _about_new_data(report: Report) -> List[str]:
    nearest = [c for c in report.comparisons if report.rival is not None and c.second == report.rival.name]
    return [NADEAU, CORANI] if any(c.prob_new_data is not None for c in nearest) else []
