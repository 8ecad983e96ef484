"""The paragraph to copy into a paper, its appendix, and the works that they cite."""

import re
from typing import Any, List, Mapping, Tuple

from fiesta_allennlp.choosing.stopping_rules import StoppingRule
from fiesta_allennlp.core.errors import MAX_SHOWN, join_some
from fiesta_allennlp.core.origin import package_source
from fiesta_allennlp.core.texts import count_text, interval_text, number_text, probability_text
from fiesta_allennlp.reports.latex_and_html import TEMPLATES_DIRECTORY
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import changes_in_words, min_score_in_words
from fiesta_allennlp.selecting.results.facts import describe_errors
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.version import __version__

FIESTA_KEY, SOFTWARE_KEY = "moss-etal-2019-fiesta", "fiesta-allennlp"
RUSSO_KEY, JOURDAN_KEY = "russo-2016-simple", "jourdan-etal-2022-top"
KARNIN_KEY, HAFFARI_KEY = "karnin-etal-2013-almost", "haffari-etal-2017-efficient"

CITATION_TEXTS = {
    FIESTA_KEY: "Moss et al., 2019",
    RUSSO_KEY: "Russo, 2016",
    JOURDAN_KEY: "Jourdan et al., 2022",
    KARNIN_KEY: "Karnin et al., 2013",
    HAFFARI_KEY: "Haffari et al., 2017",
    SOFTWARE_KEY: "this software",
}
"""How a text refers to each work of `works.bib`, by the key of its entry."""

METHOD_TEXTS: Mapping[str, Tuple[str, Tuple[str, ...]]] = {
    "top_two": ("top-two sampling", (RUSSO_KEY, JOURDAN_KEY)),
    "ttts": ("top-two Thompson sampling", (RUSSO_KEY,)),
    "thompson": ("Thompson sampling", ()),
    "bts": ("batch Thompson sampling", ()),
    "sequential_halving": ("sequential halving", (KARNIN_KEY,)),
    "non_adaptive_fc": ("equal allocation", ()),
    "non_adaptive_fb": ("equal allocation", ()),
    "student_t": ("independent normal models of the scores", (FIESTA_KEY,)),
    "logit_student_t": ("independent normal models of the logits", (FIESTA_KEY,)),
    "dirichlet_f_measure": ("a Dirichlet model of the counts behind the F-measure", (HAFFARI_KEY,)),
    "bayesian": ("the posterior probability alone", (FIESTA_KEY,)),
}
"""By registered name: how a text names a part of the method, and the works that it comes from. A part without an entry
has its registered name, and comes from this software."""


def compose_paragraph(report: Report) -> str:
    """Return the sentences to copy: the comparison, its outcome, what limits it, and what fresh runs say. Empty while
    there is nothing to report, and for two candidates of a report."""
    result = report.result
    is_over = result.stopped_by not in (None, "failures") if report.is_selection else not report.is_pair
    if result.leading is None or result.running or not is_over:
        return ""
    claims = report.confirmation_sentences or ("No fresh runs confirm this difference.",)
    return " ".join([_comparison(report), _outcome(report), *_limits(report), *claims])


def compose_appendix(report: Report) -> Tuple[str, ...]:
    """Return the rest as sentences: the method, what was changed or left out on the way, and limits."""
    result, strategy = report.result, report.strategy
    method = f"P(best) comes from {_cite(result.belief['type'])}"
    if report.is_selection:
        starts = count_text(strategy.num_starts, result.words.evaluation)
        stop = result.strategy.get("stop", {"type": str(StoppingRule.default)})["type"]
        end = f"; the end by {_cite(stop)}" if strategy.budget is None else ""
        method = f"Every {result.words.model} began with {starts}; {method}{end}"
    sentences = [f"{method}."]
    if report.meta is not None:
        sentences += changes_in_words(report.meta.changes, result.words) or (
            "The options that decide were set before the selection began.",
        )
    sentences += filter(None, [min_score_in_words(result)])
    if report.comparisons and report.is_selection:
        sentences.append("The interval takes the number of runs as fixed, and ignores how the scores chose them.")
    if result.leader and result.leader.prob_best is not None:
        sentences.append(f"P(best) is not an error rate. It refers to {_data(result)[1]}.")
    return (*sentences, *report.legend)


def _comparison(report: Report) -> str:
    result, strategy = report.result, report.strategy
    names = f" ({join_some([c.name for c in result.ranked])})" if len(result.candidates) <= MAX_SHOWN else ""
    subject = f"{len(result.candidates)} {result.words.model}s{names} by {result.metric_text}{_data(result)[0]}"
    if not report.is_selection:
        return f"We compared {subject}, over {count_text(result.num_evaluations, 'run')} [say how they were chosen]."
    quantity = f"P(within {result.margin:g} of the best)" if result.margin else "P(best)"
    end = f"until {quantity} reaches {strategy.confidence}"
    if strategy.budget is not None:
        end = f"with a budget of {strategy.budget} {result.words.evaluations}"
    rule = _cite(result.strategy["type"])
    return f"With fiesta-allennlp {__version__}, we compared {subject}, by {rule}, {end}."


def _outcome(report: Report) -> str:
    result, best, rival = report.result, report.result.leader, report.result.rival
    after = f"After {count_text(result.num_evaluations, result.words.evaluation)}"
    verb = "was selected" if result.decided else "led, and the comparison was open,"
    verb += f" as within {result.margin:g} of the best" if result.decided and result.margin else ""
    chance = probability_text(best.prob_within_margin)
    probability = "" if best.prob_within_margin is None else f" with probability {chance}"
    text = f"{after}, {best.name} {verb}{probability} ({_numbers(best, report)})"
    if rival is not None:
        text += f"; the runner-up was {rival.name} ({_numbers(rival, report)}"
        comparison = next((c for c in report.comparisons if c.second == rival.name and c.interval is not None), None)
        if comparison is not None:
            difference = number_text(comparison.mean_difference, report.decimals, sign="+")
            interval = interval_text(comparison.interval, report.decimals)
            text += f"; mean difference {difference}, 95% interval {interval}"
        text += ")"
    if result.single_runs_wrong is not None:
        share = f"{result.single_runs_wrong:.0%}"
        text += f"; one run of each would have named another {result.words.model} in {share} of cases"
    return f"{text}."


def _limits(report: Report) -> List[str]:
    """Name the models that were left out, the runs that were made before, and the bias and the measured error of the
    outcome."""
    result = report.result
    sentences = [
        f"{c.name} {'was removed by us' if c.removed else 'dropped out'}." for c in result.ranked if c.withdrawn
    ]
    brought_facts = report.meta.brought_facts if report.meta is not None else None
    if left_out := (brought_facts or {}).get("left_out"):
        sentences.append(f"Of the table of earlier runs, {join_some(left_out)} did not take part.")
    if result.num_brought:
        sentences.append(f"{result.num_brought} of the {count_text(result.num_evaluations, 'run')} were made earlier.")
    if report.is_selection and result.rival is not None and report.strategy.budget is None:
        sentences.append("The difference tends to be too large, because the scores decided when to stop.")
    return [*sentences, *describe_errors(result)]


def _data(result: Result) -> Tuple[str, str]:
    """Return the data that the scores are of, and what P(best) refers to."""
    if result.by_documents:
        return " on randomly drawn labeled documents", "further documents of the same kind"
    if result.on_official_splits:
        return f" on the official {result.scored} set" if result.sets else "", "new seeds on this split"
    is_pooled = result.scored == "test" and "test" in (result.sets or ())
    pooled = " of all the data, official test set included" if is_pooled else ""
    scored = f" on the {result.scored} sets of random splits{pooled}" if result.sets else ""
    return scored, "new splits and seeds of the same data, not to new data"


def _numbers(candidate: Any, report: Report) -> str:
    """Return the scores of a candidate in a few words."""
    if report.result.by_documents:
        return f"{number_text(candidate.measure)} on {count_text(candidate.num_documents, 'document')}"
    sd = "" if candidate.sd is None else f", sd {number_text(candidate.sd, report.decimals)}"
    return f"mean {number_text(candidate.mean, report.decimals)}{sd}, {count_text(candidate.num_evaluations, 'run')}"


def _cite(name: str) -> str:
    """Name a part of the method, with its works in parentheses."""
    text, keys = METHOD_TEXTS.get(name, (name, ()))
    return f"{text} ({'; '.join(CITATION_TEXTS[key] for key in keys)})" if keys else text


def collect_bibtex(report: Report) -> str:
    """Return the BibTeX entries of the software, the FIESTA paper, and the works behind the parts of the method."""
    text = (TEMPLATES_DIRECTORY / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    source = package_source() if report.meta is None else report.meta.source
    text = text.replace("COMMIT", f", commit {source.commit}" if source.commit else "")
    text = text.replace("URL_LINE", f"\n  url = {{{source.url}}}," if source.url else "")
    entries = {re.split(r"[{,]", entry)[1]: entry for entry in text.strip().split("\n\n")}
    strategy = report.result.strategy
    parts = strategy.get("type", ""), report.result.belief["type"], strategy.get("stop", {}).get("type", "")
    keys = [SOFTWARE_KEY, FIESTA_KEY, *(key for name in parts for key in METHOD_TEXTS.get(name, ("", ()))[1])]
    return "\n\n".join(entries[key] for key in dict.fromkeys(keys))
