"""The method of a selection as the paragraph for a paper names it: sampling rule, posterior and stopping rule, and the
works that they come from."""

from typing import Mapping, Sequence, Tuple

from fiesta_allennlp.core.defaults import BELIEF, OFFICIAL_SPLITS_BELIEF
from fiesta_allennlp.reports.measured_error import DEFAULT_RULE_ERROR
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.strategies.stopping_rules import MAX_RUNS_PER_WINNER, MIN_POWER, RuleOfThree, StoppingRule
from fiesta_allennlp.version import __version__

FIESTA_KEY, RUSSO_KEY, JOURDAN_KEY = "moss-etal-2019-fiesta", "russo-2016-simple", "jourdan-etal-2022-top"
NADEAU_KEY, CORANI_KEY = "nadeau-bengio-2003-inference", "corani-benavoli-2015-bayesian"
KARNIN_KEY, HAFFARI_KEY, SOFTWARE_KEY = "karnin-etal-2013-almost", "haffari-etal-2017-efficient", "fiesta-allennlp"

CITATION_TEXTS = {
    FIESTA_KEY: "Moss et al., 2019",
    RUSSO_KEY: "Russo, 2016",
    JOURDAN_KEY: "Jourdan et al., 2022",
    KARNIN_KEY: "Karnin et al., 2013",
    HAFFARI_KEY: "Haffari et al., 2017",
    NADEAU_KEY: "Nadeau and Bengio, 2003",
    CORANI_KEY: "Corani and Benavoli, 2015",
    SOFTWARE_KEY: f"fiesta-allennlp {__version__}",
}
"""How a text refers to each work of `works.bib`, by the key of its entry."""

Slot = Tuple[str, Tuple[str, ...]]
"""A text, empty if there is nothing to say, and the keys of the works that it cites."""

EMPTY: Slot = ("", ())

MethodTexts = Mapping[str, Slot]
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

TARGET_RULE = "{p_best} of one {what} reaches {target:g}"

RUNS_RULE = "the {what} and its nearest rival have {least} {runs} each"

NO_ERROR_RATE = "P(best) is not an error rate"

STOP_TEXTS: MethodTexts = {
    "bayesian": (f"once {TARGET_RULE}", (FIESTA_KEY,)),
    "early_looks": (
        f"once {TARGET_RULE}, or more than that with fewer than {{least}} {{runs}}, or if the limit leaves a chance "
        f"below {MIN_POWER:g} to decide, and less than one in {MAX_RUNS_PER_WINNER} runs",
        (SOFTWARE_KEY,),
    ),
    "rule_of_three": (f"once {TARGET_RULE}, {RUNS_RULE}, and skewed scores do not explain the lead", (SOFTWARE_KEY,)),
    "glr": (
        "once anytime-valid likelihood ratio tests put one {what} above all others at error level {error:g}",
        (SOFTWARE_KEY,),
    ),
    "enough_documents": (f"once {TARGET_RULE} and {RUNS_RULE}", (SOFTWARE_KEY,)),
}


def sampling(report: Report) -> Slot:
    result, strategy = report.result, report.strategy
    name = result.strategy.get("type", "")
    rule, keys = RULE_TEXTS.get(name, (f"the sampling rule {name}", ()))
    if not name:
        return "[Add how the runs were chosen. A table does not record it.]", ()
    if name == "non_adaptive_fc":
        return f"Every {model_noun(report)} ran equally often.", ()
    cited = cite(rule, keys)
    if strategy.budget is not None:
        text = f"A budget of {strategy.budget} {result.words.evaluations} was divided among them by {cited}"
        return f"{text}, and the best {quantity_text(report)} decides.", keys
    paper_key, paper = (HAFFARI_KEY, "Haffari et al. (2017)") if result.by_documents else (FIESTA_KEY, "FIESTA")
    relation = "as in" if (name, result.belief["type"], _stop_name(report)) == PAPER_METHOD else "in a variant of"
    cited_paper = paper if result.by_documents else cite(paper, (FIESTA_KEY,))
    next_text = "system to query" if result.by_documents else "model to train"
    starts = f"{strategy.num_starts} {result.words.evaluation_noun(strategy.num_starts)}"
    return f"After {starts} of each, {cited} chose which {next_text} next, {relation} {cited_paper}.", (
        *keys,
        paper_key,
    )


def posterior_model(report: Report) -> Slot:
    result = report.result
    if result.leader.prob_best is None:
        return EMPTY
    name = result.belief["type"]
    posterior, keys = POSTERIOR_TEXTS.get(name, (f"the posterior {name}", ()))
    extreme = "lowest" if result.minimise else "highest"
    text = f"P(best), the posterior probability of the {extreme} {quantity_text(report)}, comes from"
    return f"{text} {cite(posterior, keys)}.", keys


def stopping(report: Report) -> Slot:
    target = report.strategy.confidence
    if target is None:
        return EMPTY
    name, words = _stop_name(report), report.result.words
    rule, keys = STOP_TEXTS.get(name, (f"once the stopping rule {name} is met at {{target:g}}", ()))
    rule = rule.format(
        p_best=p_best_text(report),
        target=target,
        error=round(1 - target, 9),
        least=RuleOfThree().least_runs(target),
        what=words.candidate if report.result.by_documents else "model",
        runs=words.evaluations,
    )
    verb = "The selection stops" if report.is_selection else "The target is reached"
    error_rate = "" if name == "glr" else f" {_error_rate(report, name)}"
    return f"{verb} {cite(rule, keys)}.{error_rate}", keys


def _stop_name(report: Report) -> str:
    """The registered name of the stopping rule."""
    return report.result.strategy.get("stop", {"type": str(StoppingRule.default)})["type"]


def _error_rate(report: Report, stop_name: str) -> str:
    """State that P(best) is not an error rate, and which one was measured for the default rule."""
    strategy, measured = report.strategy, DEFAULT_RULE_ERROR
    choice = report.result.strategy.get("type", measured.strategy), stop_name, strategy.confidence
    is_default = choice == (measured.strategy, measured.stop, measured.confidence) and not report.result.margin
    if not is_default or report.result.belief.get("type") not in (BELIEF, OFFICIAL_SPLITS_BELIEF):
        return f"{NO_ERROR_RATE}."
    low, high = measured.interval
    return (
        f"{NO_ERROR_RATE}: on {measured.num_problems} problems of published scores, {measured.wrong_of_named:.1%} of "
        f"the winners that this rule named were wrong (95% interval {low:.1%} to {high:.1%})."
    )


def p_best_text(report: Report) -> str:
    return f"P(within {report.result.margin:g} of the best)" if report.result.margin else "P(best)"


def quantity_text(report: Report) -> str:
    return "metric" if report.result.by_documents else "mean"


def model_noun(report: Report) -> str:
    return "system" if report.result.by_documents else "model"


def cite(text: str, work_keys: Sequence[str]) -> str:
    """Add the references to works in parentheses. The first sentence has named the software."""
    references = [CITATION_TEXTS[key] for key in work_keys if key != SOFTWARE_KEY]
    return f"{text} ({'; '.join(references)})" if references else text
