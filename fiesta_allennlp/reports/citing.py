"""What to write in a paper about a selection: one paragraph, and the works that it cites."""

from typing import Dict, List, NamedTuple, Tuple

from fiesta_allennlp.records import UNDECIDED
from fiesta_allennlp.reports.content import CandidateReport, Comparison, Report
from fiesta_allennlp.reports.formats import interval_text
from fiesta_allennlp.reports.texts import changes
from fiesta_allennlp.selection.settings import SHARED
from fiesta_allennlp.selection.summary import count_text, number_text, probability_text
from fiesta_allennlp.version import __version__

MOST_NAMES = 8
"""A paragraph that lists more candidates is hard to read."""


class Work(NamedTuple):
    """A work to cite: how a text refers to it, and its BibTeX entry."""

    cited_as: str
    bibtex: str


FIESTA = Work(
    "Moss et al., 2019",
    """@inproceedings{moss-etal-2019-fiesta,
  title = {{FIESTA}: Fast {I}d{E}ntification of State-of-The-Art models using adaptive bandit algorithms},
  author = {Moss, Henry B. and Moore, Andrew and Leslie, David S. and Rayson, Paul},
  booktitle = {Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics},
  year = {2019},
  url = {https://aclanthology.org/P19-1281},
}""",
)
SOFTWARE = Work(
    f"fiesta-allennlp {__version__}",
    f"""@misc{{fiesta-allennlp,
  title = {{fiesta-allennlp {__version__}}},
  author = {{{{The fiesta-allennlp authors}}}},
  note = {{Python package}},
}}""",
)
RUSSO = Work(
    "Russo, 2016",
    """@inproceedings{russo-2016-simple,
  title = {Simple {B}ayesian Algorithms for Best Arm Identification},
  author = {Russo, Daniel},
  booktitle = {Conference on Learning Theory},
  year = {2016},
}""",
)
JOURDAN = Work(
    "Jourdan et al., 2022",
    """@inproceedings{jourdan-etal-2022-top,
  title = {Top Two Algorithms Revisited},
  author = {Jourdan, Marc and Degenne, R{\\'e}my and Baudry, Dorian and de Heide, Rianne and Kaufmann, Emilie},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2022},
}""",
)
KARNIN = Work(
    "Karnin et al., 2013",
    """@inproceedings{karnin-etal-2013-almost,
  title = {Almost Optimal Exploration in Multi-Armed Bandits},
  author = {Karnin, Zohar and Koren, Tomer and Somekh, Oren},
  booktitle = {International Conference on Machine Learning},
  year = {2013},
}""",
)
HAFFARI = Work(
    "Haffari et al., 2017",
    """@inproceedings{haffari-etal-2017-efficient,
  title = {Efficient Benchmarking of {NLP} {API}s using Multi-armed Bandits},
  author = {Haffari, Gholamreza and Tran, Tuan Dung and Carman, Mark},
  booktitle = {Proceedings of the 15th Conference of the European Chapter of the Association for Computational
    Linguistics},
  year = {2017},
}""",
)

RULES: Dict[str, Tuple[str, Tuple[Work, ...]]] = {
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
    """A paragraph to copy into a paper; empty while there is nothing to report, and for a table of scores."""
    if report.best is None or report.running or not report.strategy or report.stopped_by in (None, "failures"):
        return ""
    chosen = (_screened(report), _compared(report), _chosen(report), *changes(report))
    sentences = (*chosen, _found(report), _scope(report))
    return " ".join(sentence for sentence in sentences if sentence)


def bibtex(report: Report) -> str:
    """The BibTeX entries of the works that `paragraph` cites."""
    return "\n\n".join(work.bibtex for work in (*_papers(report), SOFTWARE))


def _papers(report: Report) -> List[Work]:
    _, works = RULES.get(report.strategy, ("", ()))
    return [FIESTA, *works, *([HAFFARI] if report.by_documents else [])]


def _screened(report: Report) -> str:
    """The first stage of a search."""
    first = report.screening
    if first is None:
        return ""
    number = len(report.candidates)
    ran = f"one run each of {len(first.scores)} of {first.num_points} configs (searcher {first.searcher})"
    return f"A screening by {ran} gave {count_text(number, 'finalist')}, by the score on the validation set."


def _compared(report: Report) -> str:
    names = [candidate.name for candidate in report.ranked]
    listed = f" ({', '.join(names)})" if len(names) <= MOST_NAMES else ""
    models = f"{len(names)} {'systems' if report.by_documents else 'models'}{listed}"
    return f"We compared {models} by {report.metric_text}{_data(report)}."


def _data(report: Report) -> str:
    """What the scores are of, as the end of a sentence."""
    if report.by_documents:
        return " on randomly drawn labelled documents"
    if report.on_official_splits:
        return f" on the {report.scored} set, training every model with several random seeds on the official split"
    if report.splits == SHARED:
        return (
            f" on the {report.scored} sets of random splits that all models share, with a new random seed for every run"
        )
    return f" on the {report.scored} set of a new random split, with a new random seed, in every run"


def _chosen(report: Report) -> str:
    rule, _ = RULES.get(report.strategy, (f"The sampling rule {report.strategy}", ()))
    cited = "; ".join(work.cited_as for work in (*_papers(report), SOFTWARE))
    what = "which system to ask" if report.by_documents else "which model to train"
    asked = report.asked_confidence
    until = "" if asked is None else f" until one was the best with a posterior probability of {asked}"
    if asked is not None and report.margin:
        until = f" until one was within {report.margin:g} of the best with a posterior probability of {asked}"
    return f"{rule} chose {what} next{until} ({cited})."


def _found(report: Report) -> str:
    best = report.candidate(report.best or "")
    spent = f"After {report.num_evaluations} {report.words.evaluations_of(report.num_evaluations)}"
    probability = f"P(best) = {probability_text(best.prob_best)}"
    if report.margin:
        probability = f"P(within {report.margin:g} of the best) = {probability_text(best.prob_within_margin)}"
    if report.stopped_by in UNDECIDED:
        result = f"{spent} the comparison was inconclusive; {best.name} led with {probability} ({_numbers(best)})."
    else:
        result = f"{spent}, {best.name} was selected, with {probability} ({_numbers(best)})."
    rivals = [candidate for candidate in report.ranked if candidate.name != best.name and not candidate.withdrawn]
    return f"{result} {_next(rivals[0], report)}" if rivals else result


def _numbers(candidate: CandidateReport) -> str:
    if candidate.asked is not None:
        return f"{number_text(candidate.asked.measure)} on {count_text(candidate.asked.num_documents, 'document')}"
    spread = "" if candidate.sd is None else f", sd {number_text(candidate.sd)}"
    return f"mean {number_text(candidate.mean)}{spread} over {count_text(candidate.num_evaluations, 'run')}"


def _next(rival: CandidateReport, report: Report) -> str:
    """The nearest rival, and how far it is behind on shared splits."""
    text = f"Next was {rival.name} ({_numbers(rival)})"
    for comparison in report.comparisons:
        if comparison.second == rival.name and comparison.mean_difference is not None and comparison.interval:
            return f"{text}, with a {_difference(comparison)}."
    return f"{text}."


def _difference(comparison: Comparison) -> str:
    where = f" on {count_text(comparison.num_pairs, 'shared split')}" if comparison.paired else ""
    difference = number_text(comparison.mean_difference)
    return f"mean difference of {difference}{where} (95 % interval {interval_text(comparison.interval)})"


def _scope(report: Report) -> str:
    if report.by_documents:
        return "P(best) is about further documents of the same kind."
    if report.on_official_splits:
        return "P(best) is about new seeds on this split, not about new data."
    return "P(best) is about new splits and seeds of the same data, not about new data."
