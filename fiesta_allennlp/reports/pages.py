"""Writes the files of a report: its page, text, LaTeX and CSV, its figures, and the paragraph to copy into a paper."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import atomic_replacement, to_csv_cell
from fiesta_allennlp.reports import cells
from fiesta_allennlp.reports.formats import TEMPLATES, prose, render, render_rows
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import changes
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.strategies.stopping_rules import HOPELESS, RuleOfThree
from fiesta_allennlp.tables.rows import BY_POSITION, SPLITS_ARE_SEEDS
from fiesta_allennlp.tables.settings import NextSettings
from fiesta_allennlp.version import __version__

FIGURES = "figures"
"""The directory of the figures, beside the other files."""


def refuse_link(directory: Path) -> None:
    """Refuse a symbolic link, with which somebody else could redirect the files."""
    if directory.is_symlink():
        raise ConfigError(f"{directory} is a symbolic link. Delete it, or use another directory with --output.")


def write_report(report: Report, directory: Path, *, long_table: bool = False) -> None:
    """Write every file of a report. Text comes first, so it is there where drawing fails."""
    from fiesta_allennlp.reports.figures.drawing import FIGURE_ENDINGS, draw_all, registered_figures

    refuse_link(directory / FIGURES)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in registered_figures():  # one with nothing to show is not drawn
            for ending in FIGURE_ENDINGS:
                (directory / FIGURES / f"{name}{ending}").unlink(missing_ok=True)
        _write(directory / "report.md", render_markdown(report))
        _write(directory / "table.tex", render_latex(report, long=long_table))
        _write(directory / "scores.csv", render_csv(report))
        pictures = draw_all(report, directory / FIGURES)
        _write(directory / "report.html", render_html(report, pictures))
        _write(directory / "report.md", render_markdown(report, pictures))
    except OSError as error:
        raise ConfigError(f"cannot write to --output {directory}: {error}. Use another directory.") from error


def _write(path: Path, text: str) -> None:
    with atomic_replacement(path) as temporary_path:
        temporary_path.write_text(text, encoding="utf-8", newline="")


def render_csv(report: Report) -> str:
    """Return every score as a table that `fiesta replay` reads."""
    csv_text = io.StringIO()
    writer = csv.writer(csv_text, lineterminator="\n")
    writer.writerow(["candidate", "split", "seed", "score", "development_score", "metric"])
    metric = to_csv_cell(Metric(report.metric, report.minimise).option_text)
    for candidate in report.candidates:
        development = candidate.development_scores or (None,) * candidate.num_evaluations
        columns = (candidate.split_seeds, candidate.replicates, candidate.scores, development)
        writer.writerows([to_csv_cell(candidate.name), *row, metric] for row in zip(*columns, strict=True))
    return csv_text.getvalue()


def render_markdown(report: Report, pictures: Mapping[str, Any] = {}) -> str:
    values = {"cells": cells, "paragraph": paragraph, "bibtex": bibtex, "pictures": pictures, "directory": FIGURES}
    return render("report.md.j2", report=report, **values).rstrip() + "\n"


def render_latex(report: Report, *, long: bool = False) -> str:
    """Return a `tabular` of the candidates; with `long`, of all columns, and a second one of the comparisons."""
    return render("table.tex.j2", report=report, cells=cells, long=long)


def render_html(report: Report, pictures: Mapping[str, Any]) -> str:
    """Return the page, which needs no other file and no network. `pictures` has a `Picture` for each figure."""
    rank = "best" if report.decided else "leads"
    return render(
        "report.html.j2",
        report=replace(report, candidates=report.ranked, comparisons=report.ranked_comparisons),
        words=report.words,
        cells=cells,
        paragraph=paragraph,
        bibtex=bibtex,
        rank=rank,
        facts=render_rows("facts.j2", report=report, rank=rank),
        pictures=pictures,
    )


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

MethodTexts = Mapping[str, Tuple[str, Tuple[str, ...]]]
"""By registered name: how a text names a part of the method, and the works that it comes from."""

RULE_TEXTS: MethodTexts = {
    "top_two": ("top-two sampling", (RUSSO, JOURDAN)),
    "ttts": ("top-two Thompson sampling", (RUSSO,)),
    "thompson": ("Thompson sampling", ()),
    "bts": ("batch Thompson sampling", ()),
    "sequential_halving": ("sequential halving", (KARNIN, FIESTA)),
    "non_adaptive_fc": ("equal allocation", ()),
    "non_adaptive_fb": ("equal allocation", ()),
}

POSTERIOR_TEXTS: MethodTexts = {
    "split_paired": ("split_paired, a Bayesian model that pairs scores on shared splits", (SOFTWARE,)),
    "unpaired": ("unpaired, a Bayesian model that learns the noise from all scores", (SOFTWARE,)),
    "student_t": ("independent normal models of the scores", (FIESTA,)),
    "logit_split_paired": ("logit_split_paired, a Bayesian model that pairs logits on shared splits", (SOFTWARE,)),
    "logit_unpaired": ("logit_unpaired, a Bayesian model that learns the noise of logits", (SOFTWARE,)),
    "logit_student_t": ("independent normal models of the logits", (FIESTA,)),
    "paired_measure": ("paired_measure, a Bayesian model that pairs systems on shared documents", (SOFTWARE,)),
    "dirichlet_f_measure": ("a Dirichlet model of the counts behind the F-measure", (HAFFARI,)),
}

OF_THE_PAPER = ("ttts", "student_t", "bayesian")
"""Sampling rule, posterior and stopping rule of the FIESTA paper."""

AT_TARGET = "{p_best} of one {what} reaches {target}"
ENOUGH_RUNS = "the {what} and its nearest rival have {least} {evaluations} each"

STOP_TEXTS: MethodTexts = {
    "bayesian": (AT_TARGET, (FIESTA,)),
    "early_looks": (
        f"{AT_TARGET}, or more than that while it or its nearest rival has fewer than {{least}} "
        "{evaluations}; once a {evaluation} has collapsed, both need {least} {evaluations} and a lead that skewed "
        "scores do not explain",
        (SOFTWARE,),
    ),
    "rule_of_three": (f"{AT_TARGET}, {ENOUGH_RUNS}, and their skewed scores do not explain the lead", (SOFTWARE,)),
    "glr": (
        "anytime-valid likelihood ratio tests put one {what} above all others at error level {error:g}",
        (SOFTWARE,),
    ),
    "enough_documents": (f"{AT_TARGET} and {ENOUGH_RUNS}", (SOFTWARE,)),
}


def paragraph(report: Report) -> str:
    """Return a paragraph to copy; empty while there is nothing to report, and for two candidates of a report."""
    is_over = report.stopped_by not in (None, "failures") if report.strategy else not report.is_pair
    if report.leading is None or report.running or not is_over:
        return ""
    rule, posterior, stop = (_cited(*part) for part in _method(report))
    papers = {FIESTA: "FIESTA (Moss et al., 2019)", HAFFARI: "Haffari et al. (2017)"}
    how = "as in" if (report.strategy, report.belief, report.stop) == OF_THE_PAPER else "in a variant of"
    as_in = "".join(f", {how} {papers[key]}" for key in _similar_work(report))
    about = {"rule": rule, "posterior": posterior, "stop": stop, "as_in": as_in, "software": CITED_AS[SOFTWARE]}
    are_assumed = any(note in report.decision for note in (SPLITS_ARE_SEEDS, BY_POSITION))
    notes = changes(report.changes, report.words)
    return prose("paragraph", report, **about, notes=notes, splits_are_assumed=are_assumed, hopeless=HOPELESS)


def bibtex(report: Report) -> str:
    """Return the BibTeX entries of the works that `paragraph` cites."""
    works = (TEMPLATES / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    entries_by_key = {re.split(r"[{,]", entry)[1]: entry for entry in works.strip().split("\n\n")}
    method_keys = [key for _, keys in _method(report) for key in keys]
    keys = dict.fromkeys([SOFTWARE, *_similar_work(report), *method_keys, *_about_new_data(report)])
    return "\n\n".join(entries_by_key[key] for key in keys)


def _method(report: Report) -> List[Tuple[str, Tuple[str, ...]]]:
    """Return the sampling rule, the posterior and the stopping rule as a text names them, each with its works."""
    stop, target = report.stop, report.asked_confidence or 0.0
    if not report.strategy:  # a table is decided as `fiesta next` decides
        deciding = NextSettings().decision_options()
        stop, target = deciding["stop"]["type"], deciding["confidence"]
    names = {"the sampling rule": report.strategy, "the posterior": report.belief, "the stopping rule": stop}
    texts = (RULE_TEXTS, POSTERIOR_TEXTS, STOP_TEXTS)
    rule, posterior, (text, works) = (
        described.get(name, (f"{kind} {name}" if name else "", ()))
        for described, (kind, name) in zip(texts, names.items(), strict=True)
    )
    about = {
        "p_best": f"P(within {report.margin:g} of the best)" if report.margin else "P(best)",
        "target": target,
        "error": round(1 - target, 9),
        "least": RuleOfThree().least_runs(target) if target else 0,
        "what": report.words.candidate if report.by_documents else "model",
        "evaluation": report.words.evaluation,
        "evaluations": report.words.evaluations,
    }
    if stop and stop not in STOP_TEXTS:
        text = f"{text} is met at {target}"
    return [rule, posterior, (text.format(**about), works)]


def _cited(text: str, works: Sequence[str]) -> str:
    return f"{text} ({'; '.join(CITED_AS[key] for key in works)})" if works else text


def _similar_work(report: Report) -> List[str]:
    """Return the work that chose runs as this selection did, one after the other; none for other ways."""
    is_adaptive = report.strategy and report.budget is None and report.strategy != "non_adaptive_fc"
    return [HAFFARI if report.by_documents else FIESTA] if is_adaptive else []


def _about_new_data(report: Report) -> List[str]:
    nearest = [c for c in report.comparisons if report.rival is not None and c.second == report.rival.name]
    return [NADEAU, CORANI] if any(c.prob_new_data is not None for c in nearest) else []
