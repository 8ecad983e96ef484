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
from fiesta_allennlp.reports.formats import TEMPLATES_DIRECTORY, render_file, render_prose
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import changes_in_words
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.strategies.stopping_rules import MIN_POWER, RuleOfThree
from fiesta_allennlp.tables.settings import NextSettings
from fiesta_allennlp.version import __version__

FIGURES_DIRECTORY = "figures"
"""The directory of the figures, beside the other files."""


def refuse_symbolic_link(directory: Path) -> None:
    """Refuse a symbolic link, with which somebody else could redirect the files."""
    if directory.is_symlink():
        raise ConfigError(f"{directory} is a symbolic link. Delete it, or use another directory with --output.")


def write_report(report: Report, directory: Path, *, long_table: bool = False) -> None:
    """Write every file of a report. Text comes first, so it is there where drawing fails."""
    from fiesta_allennlp.reports.figures.drawing import FIGURE_ENDINGS, draw_all, registered_figures

    refuse_symbolic_link(directory / FIGURES_DIRECTORY)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in registered_figures():  # one with nothing to show is not drawn
            for ending in FIGURE_ENDINGS:
                (directory / FIGURES_DIRECTORY / f"{name}{ending}").unlink(missing_ok=True)
        _write_file(directory / "report.md", render_markdown(report))
        _write_file(directory / "table.tex", render_latex(report, long=long_table))
        _write_file(directory / "scores.csv", render_csv(report))
        pictures = draw_all(report, directory / FIGURES_DIRECTORY)
        _write_file(directory / "report.html", render_html(report, pictures))
        _write_file(directory / "report.md", render_markdown(report, pictures))
    except OSError as error:
        raise ConfigError(f"cannot write to --output {directory}: {error}. Use another directory.") from error


def _write_file(path: Path, text: str) -> None:
    with atomic_replacement(path) as temporary_path:
        temporary_path.write_text(text, encoding="utf-8", newline="")


def render_csv(report: Report) -> str:
    """Return every score as a table that `fiesta replay` reads."""
    csv_text = io.StringIO()
    writer = csv.writer(csv_text, lineterminator="\n")
    writer.writerow(["candidate", "split", "seed", "score", "development_score", "metric"])
    metric_text = to_csv_cell(Metric(report.metric, report.minimise).option_text)
    for candidate in report.candidates:
        development_scores = candidate.development_scores or (None,) * candidate.num_evaluations
        columns = (candidate.split_seeds, candidate.replicates, candidate.scores, development_scores)
        writer.writerows([to_csv_cell(candidate.name), *cells, metric_text] for cells in zip(*columns, strict=True))
    return csv_text.getvalue()


def render_markdown(report: Report, pictures: Mapping[str, Any] = {}) -> str:
    template_values = {"cells": cells, "paragraph": compose_paragraph, "bibtex": collect_bibtex, "pictures": pictures}
    return render_file("report.md.j2", report=report, directory=FIGURES_DIRECTORY, **template_values).rstrip() + "\n"


def render_latex(report: Report, *, long: bool = False) -> str:
    """Return a `tabular` of the candidates; with `long`, of all columns, and a second one of the comparisons."""
    return render_file("table.tex.j2", report=report, cells=cells, long=long)


def render_html(report: Report, pictures: Mapping[str, Any]) -> str:
    """Return the page, which needs no other file and no network. `pictures` has a `Picture` for each figure."""
    return render_file(
        "report.html.j2",
        report=replace(report, candidates=report.ranked, comparisons=report.ranked_comparisons),
        words=report.words,
        cells=cells,
        paragraph=compose_paragraph,
        bibtex=collect_bibtex,
        rank="best" if report.decided else "leads",
        pictures=pictures,
    )


FIESTA_KEY, RUSSO_KEY, JOURDAN_KEY = "moss-etal-2019-fiesta", "russo-2016-simple", "jourdan-etal-2022-top"
NADEAU_KEY, CORANI_KEY = "nadeau-bengio-2003-inference", "corani-benavoli-2015-bayesian"
KARNIN_KEY, HAFFARI_KEY, SOFTWARE_KEY = "karnin-etal-2013-almost", "haffari-etal-2017-efficient", "fiesta-allennlp"

CITATION_TEXTS = {
    FIESTA_KEY: "Moss et al., 2019",
    RUSSO_KEY: "Russo, 2016",
    JOURDAN_KEY: "Jourdan et al., 2022",
    KARNIN_KEY: "Karnin et al., 2013",
    HAFFARI_KEY: "Haffari et al., 2017",
    SOFTWARE_KEY: f"fiesta-allennlp {__version__}",
}
"""How a text refers to each work of `works.bib`, by the key of its entry."""

MethodTexts = Mapping[str, Tuple[str, Tuple[str, ...]]]
"""By registered name: how a text names a part of the method, and the works that it comes from."""

RULE_TEXTS: MethodTexts = {
    "top_two": ("top-two sampling", (RUSSO_KEY, JOURDAN_KEY)),
    "ttts": ("top-two Thompson sampling", (RUSSO_KEY,)),
    "thompson": ("Thompson sampling", ()),
    "bts": ("batch Thompson sampling", ()),
    "sequential_halving": ("sequential halving", (KARNIN_KEY, FIESTA_KEY)),
    "non_adaptive_fc": ("equal allocation", ()),
    "non_adaptive_fb": ("equal allocation", ()),
}

POSTERIOR_TEXTS: MethodTexts = {
    "split_paired": ("split_paired, a Bayesian model that pairs scores on shared splits", (SOFTWARE_KEY,)),
    "unpaired": ("unpaired, a Bayesian model that learns the noise from all scores", (SOFTWARE_KEY,)),
    "student_t": ("independent normal models of the scores", (FIESTA_KEY,)),
    "logit_split_paired": ("logit_split_paired, a Bayesian model that pairs logits on shared splits", (SOFTWARE_KEY,)),
    "logit_unpaired": ("logit_unpaired, a Bayesian model that learns the noise of logits", (SOFTWARE_KEY,)),
    "logit_student_t": ("independent normal models of the logits", (FIESTA_KEY,)),
    "paired_measure": ("paired_measure, a Bayesian model that pairs systems on shared documents", (SOFTWARE_KEY,)),
    "dirichlet_f_measure": ("a Dirichlet model of the counts behind the F-measure", (HAFFARI_KEY,)),
}

PAPER_METHOD = ("ttts", "student_t", "bayesian")
"""Sampling rule, posterior and stopping rule of the FIESTA paper."""

TARGET_RULE = "{p_best} of one {what} reaches {target}"
RUNS_RULE = "the {what} and its nearest rival have {least} {evaluations} each"

STOP_TEXTS: MethodTexts = {
    "bayesian": (TARGET_RULE, (FIESTA_KEY,)),
    "early_looks": (
        f"{TARGET_RULE}, or more than that while it or its nearest rival has fewer than {{least}} "
        "{evaluations}; once a {evaluation} has collapsed, both need {least} {evaluations} and a lead that skewed "
        "scores do not explain",
        (SOFTWARE_KEY,),
    ),
    "rule_of_three": (f"{TARGET_RULE}, {RUNS_RULE}, and their skewed scores do not explain the lead", (SOFTWARE_KEY,)),
    "glr": (
        "anytime-valid likelihood ratio tests put one {what} above all others at error level {error:g}",
        (SOFTWARE_KEY,),
    ),
    "enough_documents": (f"{TARGET_RULE} and {RUNS_RULE}", (SOFTWARE_KEY,)),
}


def compose_paragraph(report: Report) -> str:
    """Return a paragraph to copy; empty while there is nothing to report, and for two candidates of a report."""
    is_over = report.stopped_by not in (None, "failures") if report.strategy else not report.is_pair
    if report.leading is None or report.running or not is_over:
        return ""
    rule, posterior, stopping_rule = (_add_citations(*method_part) for method_part in _describe_method(report))
    paper_texts = {FIESTA_KEY: "FIESTA (Moss et al., 2019)", HAFFARI_KEY: "Haffari et al. (2017)"}
    relation = "as in" if (report.strategy, report.belief, report.stop) == PAPER_METHOD else "in a variant of"
    as_in = "".join(f", {relation} {paper_texts[key]}" for key in _list_similar_works(report))
    return render_prose(
        "paragraph",
        report,
        rule=rule,
        posterior=posterior,
        stop=stopping_rule,
        as_in=as_in,
        software=CITATION_TEXTS[SOFTWARE_KEY],
        notes=changes_in_words(report.changes, report.words),
        splits_are_assumed=any(read_back.are_splits_assumed for read_back in report.read_backs),
        hopeless=MIN_POWER,
    )


def collect_bibtex(report: Report) -> str:
    """Return the BibTeX entries of the works that `compose_paragraph` cites."""
    bibtex_text = (TEMPLATES_DIRECTORY / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    entries_by_key = {re.split(r"[{,]", entry)[1]: entry for entry in bibtex_text.strip().split("\n\n")}
    method_keys = [key for _, work_keys in _describe_method(report) for key in work_keys]
    work_keys = dict.fromkeys([SOFTWARE_KEY, *_list_similar_works(report), *method_keys])
    rival_comparisons = [c for c in report.comparisons if report.rival is not None and c.second == report.rival.name]
    if any(comparison.prob_new_data is not None for comparison in rival_comparisons):
        work_keys.update(dict.fromkeys([NADEAU_KEY, CORANI_KEY]))
    return "\n\n".join(entries_by_key[key] for key in work_keys)


def _describe_method(report: Report) -> List[Tuple[str, Tuple[str, ...]]]:
    """Return the sampling rule, the posterior and the stopping rule as a text names them, each with its works."""
    stop_name, target_confidence = report.stop, report.asked_confidence or 0.0
    if not report.strategy:  # a table is decided as `fiesta next` decides
        next_strategy = NextSettings().decision_options()
        stop_name, target_confidence = next_strategy["stop"]["type"], next_strategy["confidence"]
    names = {"the sampling rule": report.strategy, "the posterior": report.belief, "the stopping rule": stop_name}
    texts_of_kinds = (RULE_TEXTS, POSTERIOR_TEXTS, STOP_TEXTS)
    rule, posterior, (stop_text, stop_works) = (
        method_texts.get(name, (f"{kind} {name}" if name else "", ()))
        for method_texts, (kind, name) in zip(texts_of_kinds, names.items(), strict=True)
    )
    text_values = {
        "p_best": f"P(within {report.margin:g} of the best)" if report.margin else "P(best)",
        "target": target_confidence,
        "error": round(1 - target_confidence, 9),
        "least": RuleOfThree().least_runs(target_confidence) if target_confidence else 0,
        "what": report.words.candidate if report.by_documents else "model",
        "evaluation": report.words.evaluation,
        "evaluations": report.words.evaluations,
    }
    if stop_name and stop_name not in STOP_TEXTS:
        stop_text = f"{stop_text} is met at {target_confidence}"
    return [rule, posterior, (stop_text.format(**text_values), stop_works)]


def _add_citations(text: str, work_keys: Sequence[str]) -> str:
    return f"{text} ({'; '.join(CITATION_TEXTS[key] for key in work_keys)})" if work_keys else text


def _list_similar_works(report: Report) -> List[str]:
    """Return the work that chose runs as this selection did, one after the other; none for other ways."""
    is_adaptive = report.strategy and report.budget is None and report.strategy != "non_adaptive_fc"
    return [HAFFARI_KEY if report.by_documents else FIESTA_KEY] if is_adaptive else []
