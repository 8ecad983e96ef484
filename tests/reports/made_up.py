"""Reports of invented selections, large and small, to draw and to look at. Only the scores are invented."""

from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.strategy import Margin, analyse
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.document_selection import DocumentsResult, SystemResult
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result

LONG_NAME = "bert-base-uncased-with-adapters-lr-3e-5-warmup-0.1-layers-frozen-0-to-{}-seed-free-run"
UGLY_NAMES = ('<script>alert("x")</script>', 'a & b\'s "best" <b>', "100 % $x_1$ {{ name }} \\frac", "模型 ünïcode ☃")

TOP_TWO = {"type": "top_two", "belief": {"type": "moderated_t"}, "confidence": 0.95}
RUN_FACTS: Dict[str, Any] = {
    "strategy": TOP_TWO,
    "belief": TOP_TWO["belief"],
    "splits": "shared",
    "sets": ("train", "validation", "test"),
}


def report_of(history: History, *, leading: Optional[str], margin: float = 0.0, **facts: Any) -> Report:
    """The report of a selection that named `leading` after these runs."""
    facts = {**RUN_FACTS, **facts}
    strategy = build(Strategy, facts["strategy"] or TOP_TWO)
    decision = replace(analyse(history, strategy.belief, margin=Margin(margin)), best=leading)
    metric, stopped_by = Metric.parse(facts.pop("metric", "macro_f1")), facts.pop("stopped_by", "confidence")
    parameters = dict.fromkeys(history.candidates, 123456)
    decision = replace(decision, stopped_by=stopped_by)
    result = Result.from_decision(history, decision, metric, num_parameters=parameters, **facts)
    return Report(source="runs/made up", result=result, history=history, strategy=strategy)


def made_up(
    num_candidates: int, *, num_evaluations: int = 0, names: Sequence[str] = (), margin: float = 0.0, **facts: Any
) -> Report:
    """A report of candidates `model_0`, the best, to `model_N`, whose scores share splits. The better a candidate the
    more evaluations it has; 0 means about 8 for each. With as many evaluations as candidates each has one."""
    rng = np.random.default_rng(1)
    all_names = (*names, *(f"model_{index}" for index in range(len(names), num_candidates)))
    counts = _counts(num_candidates, num_evaluations or 8 * num_candidates)
    splits = rng.normal(0, 0.015, max(counts))
    evaluations = [
        _evaluation(name, k, 0.65 - 0.006 * place + splits[k] + rng.normal(0, 0.008), rng)
        for place, (name, count) in enumerate(zip(all_names, counts, strict=True))
        for k in range(count)
    ]
    rng.shuffle(evaluations)
    return report_of(History(all_names, tuple(evaluations)), leading=all_names[0], margin=margin, **facts)


def _evaluation(name: str, replicate: int, score: float, rng: np.random.Generator) -> Evaluation:
    metrics = {"best_validation_macro_f1": score + rng.normal(0, 0.01)}
    return Evaluation(_request(name, replicate), score, "macro_f1", 100.0, metrics=metrics)


def _request(name: str, replicate: int) -> Request:
    return Request(name, replicate, split_seed=replicate, random_seed=0, numpy_seed=0, pytorch_seed=0)


def candidate(
    name: str, scores: Sequence[float], seeds: Optional[Sequence[int]] = None, **values: Any
) -> CandidateResult:
    """A candidate with these scores, by default on the splits 0, 1, 2 and so on, and nothing computed."""
    split_seeds = tuple(range(len(scores)) if seeds is None else seeds)
    return CandidateResult(name, len(scores), scores=tuple(map(float, scores)), split_seeds=split_seeds, **values)


def _counts(num_candidates: int, num_evaluations: int) -> List[int]:
    """Each at least two if there are so many, the rest falling by half from the best on, as a bandit deals them out."""
    shares = 0.5 ** np.arange(num_candidates)
    least = min(2, num_evaluations // num_candidates)
    counts = least + (shares / shares.sum() * (num_evaluations - least * num_candidates)).astype(int)
    counts[0] += num_evaluations - counts.sum()
    return [int(number) for number in counts]


def with_failures(report: Report) -> Report:
    """The last candidate is withdrawn after failures, as is the one before it, which failed before it had any score."""
    history, (*_, before, last) = report.history, report.history.candidates
    memory = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB <here>"
    failed = [(last, "error", memory), (last, "timeout", "3600 s"), (before, "error", memory)]
    failures = tuple(Failure(_request(name, 90 + k), kind, error) for k, (name, kind, error) in enumerate(failed))
    evaluations = tuple(run for run in history.evaluations if run.request.candidate != before)
    changes: Dict[str, Any] = {"failures": failures, "withdrawn": frozenset({before, last})}
    result = report.result
    return report_of(replace(history, evaluations=evaluations, **changes), leading=result.leading, margin=result.margin)


def long_names(num_candidates: int = 12) -> Report:
    return with_failures(made_up(num_candidates, names=[LONG_NAME.format(index) for index in range(num_candidates)]))


def just_begun() -> Report:
    """A running selection without a single score."""
    return report_of(History(("td_lstm", "ian")), leading=None, stopped_by=None, running=True)


TABLE: Dict[str, Any] = {"strategy": {}, "splits": "", "sets": None}


def of_table(**facts: Any) -> Report:
    """A table of released scores: no order, no time, and a rival that shares no split."""
    history = made_up(3, num_evaluations=30).history
    evaluations = [
        replace(run, seconds=0.0, request=replace(run.request, split_seed=run.request.split_seed + shift))
        for run in history.evaluations
        for shift in [100 if run.request.candidate == "model_2" else 0]
    ]
    changed = replace(history, evaluations=tuple(evaluations))
    return report_of(changed, leading="model_0", **{**TABLE, **facts})


def by_documents(num_systems: int = 6) -> Report:
    """Systems that were asked about documents; the last but one has answered nothing, the last was withdrawn."""
    report = with_failures(made_up(num_systems, names=[LONG_NAME.format(0), *UGLY_NAMES], margin=0.01))
    facts = {**vars(report.result), "candidates": tuple(map(_system, report.result.candidates))}
    facts = {name: value for name, value in facts.items() if name in DocumentsResult.__dataclass_fields__}
    about = {"strategy": {**TOP_TWO, "stop": {"type": "enough_documents"}}, "belief": {"type": "paired_measure"}}
    result = DocumentsResult(
        **{**facts, **about, "splits": "", "sets": None, "lead": None}, documents={"batch_size": 1}
    )
    return replace(report, result=result)


def _system(made: CandidateResult) -> SystemResult:
    number = made.num_evaluations
    interval = None if made.withdrawn or made.mean is None else (made.mean - 0.1, made.mean + 0.05)
    asked: Dict[str, Any] = {"num_documents": number, "num_queries": number, "cost": 0.25 * number}
    return SystemResult(**{**vars(made), **asked, "measure": made.mean, "interval": interval})


CASES: Dict[str, Callable[[], Report]] = {
    "two": partial(made_up, 2),
    "long_names": long_names,
    "ugly": partial(made_up, 5, names=UGLY_NAMES, margin=0.005),
    "table": of_table,
    "just_begun": just_begun,
    "running": partial(made_up, 3, num_evaluations=9, running=True, stopped_by=None),
    "documents": by_documents,
}
"""Each makes a report. The ugly names have markup, quotes, mathematics, and letters that the figures' font lacks."""
