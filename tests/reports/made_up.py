"""Reports of invented selections, large and small, to draw and to look at."""

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.records import Decision, Evaluation, History, Request
from fiesta_allennlp.reports.candidates import CandidateReport, DevelopmentCorrelation, SingleScoreRisk, compare_scores
from fiesta_allennlp.reports.record import PathPoint, Report
from fiesta_allennlp.reports.screening import Finalist, ScreeningReport
from fiesta_allennlp.reports.source_data import DOCUMENT_WORDS
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.result import CandidateResult, FailedRun

LONG_NAME = "bert-base-uncased-with-adapters-lr-3e-5-warmup-0.1-layers-frozen-0-to-{}-seed-free-run"
UGLY_NAMES = ('<script>alert("x")</script>', 'a & b\'s "best" <b>', "100 % $x_1$ {{ name }} \\frac", "模型 ünïcode ☃")


def made_up(
    num_candidates: int, *, num_evaluations: int = 0, names: Sequence[str] = (), margin: float = 0.0, seed: int = 1
) -> Report:
    """A report of candidates `model_0`, the best, to `model_N`, whose scores share splits. The better a candidate the
    more evaluations it has; 0 means about 8 for each. With as many evaluations as candidates each has one."""
    rng = np.random.default_rng(seed)
    all_names = (*names, *(f"model_{index}" for index in range(len(names), num_candidates)))
    counts = _counts(num_candidates, num_evaluations or 8 * num_candidates)
    splits = rng.normal(0, 0.015, max(counts))
    evaluations = [
        _evaluation(name, k, 0.65 - 0.006 * place + splits[k] + rng.normal(0, 0.008), rng)
        for place, (name, count) in enumerate(zip(all_names, counts, strict=True))
        for k in range(count)
    ]
    rng.shuffle(evaluations)
    history, path = History(all_names, tuple(evaluations)), _path(all_names, len(evaluations))
    last, best = path[-1].prob_best, all_names[0]
    decision = Decision(best, margin, prob_best=last, prob_within_margin=last)
    results = [CandidateResult.from_history(history, decision, name) for name in all_names]
    facts: Dict[str, Any] = {"development_metric": "validation_macro_f1", "num_parameters": 123456}
    candidates = tuple(CandidateReport.from_result(history, result, **facts) for result in results)
    return Report(
        title="Selection of models",
        source="runs/made up",
        decision=(f"{best} is the best with probability {last[best]:.2f}.", "That is an invented decision."),
        metric="macro_f1",
        leading=best,
        candidates=candidates,
        asked_confidence=0.95,
        margin=margin,
        stopped_by="confidence",
        adaptive=True,
        belief="split_paired",
        strategy="top_two",
        stop="early_looks",
        num_starts=3,
        splits="shared",
        scored="test",
        sets=("train", "validation", "test"),
        path=path,
        order=tuple(evaluation.request.candidate for evaluation in evaluations),
        comparisons=tuple(compare_scores(candidates[0], rival) for rival in candidates[1:]),
        single_score=SingleScoreRisk(best, 0.31, wrong_same_split=0.12, num_common_splits=2, wrong_best_of_3=0.27),
        development=DevelopmentCorrelation("validation_macro_f1", 0.61, len(evaluations), {best: 0.4}),
        checklist=(("seeds", "seed 12345"), ("command to repeat it all", "allennlp fiesta-select a.jsonnet -s DIR")),
        notes=("The scores are invented.",),
    )


def _evaluation(name: str, replicate: int, score: float, rng: np.random.Generator) -> Evaluation:
    request = Request(name, replicate, split_seed=replicate, random_seed=0, numpy_seed=0, pytorch_seed=0)
    metrics = {"validation_macro_f1": score + rng.normal(0, 0.01)}
    return Evaluation(request, score, "macro_f1", 100.0, metrics=metrics)


def candidate(
    name: str, scores: Sequence[float], seeds: Optional[Sequence[int]] = None, **values: Any
) -> CandidateReport:
    """A report with these scores, by default on the splits 0, 1, 2 and so on, and nothing computed."""
    split_seeds = tuple(range(len(scores)) if seeds is None else seeds)
    return CandidateReport(name, len(scores), scores=tuple(map(float, scores)), split_seeds=split_seeds, **values)


def _counts(num_candidates: int, num_evaluations: int) -> List[int]:
    """Each at least one, the rest falling by half from the best on, as a bandit deals them out."""
    shares = 0.5 ** np.arange(num_candidates)
    counts = 1 + (shares / shares.sum() * (num_evaluations - num_candidates)).astype(int)
    counts[0] += num_evaluations - counts.sum()
    return [int(number) for number in counts]


def _path(names: Sequence[str], num_evaluations: int) -> Tuple[PathPoint, ...]:
    """Beliefs that come to favour the first."""
    points, places = [], np.arange(len(names))
    for number in range(1, num_evaluations + 1):
        weights = np.exp(-0.3 * places + (places == 0) * 9 * number / num_evaluations)
        points.append(PathPoint(number, dict(zip(names, (weights / weights.sum()).tolist(), strict=True))))
    return tuple(points)


def with_failures(report: Report) -> Report:
    """The last candidate is withdrawn after failures, the one before it failed before it had any score."""
    *other_candidates, before, last = report.candidates
    memory = FailedRun("x-0", "error", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB <here>")
    failed = (memory, FailedRun("x-1", "timeout", "3600 s"))
    last = replace(last, failed_runs=failed, num_counted_failures=2, state="failed", prob_best=None)
    before = CandidateReport(name=before.name, failed_runs=failed[:1])
    comparisons = tuple(c for c in report.comparisons if c.second not in (before.name, last.name))
    order = tuple(name for name in report.order if name != before.name)
    path = tuple(_without(point, (before.name, last.name)) for point in report.path)
    return replace(
        report, candidates=(*other_candidates, before, last), comparisons=comparisons, order=order, path=path
    )


def _without(point: PathPoint, names: Sequence[str]) -> PathPoint:
    return replace(point, prob_best={name: p for name, p in point.prob_best.items() if name not in names})


def ugly() -> Report:
    """Names with markup, quotes, mathematics and letters that the figures' font lacks."""
    return made_up(5, names=UGLY_NAMES, margin=0.005)


def long_names(num_candidates: int = 12) -> Report:
    return with_failures(made_up(num_candidates, names=[LONG_NAME.format(index) for index in range(num_candidates)]))


def just_begun() -> Report:
    """A running selection without a single score."""
    names = ("td_lstm", "ian")
    return Report(
        title="Selection of models",
        source="runs/new",
        decision=("Nothing has finished yet.",),
        metric="macro_f1",
        leading=None,
        candidates=tuple(CandidateReport(name=name) for name in names),
        running=True,
    )


def of_table() -> Report:
    """A table of released scores: no order, no path, no time, and a rival that shares no split."""
    report = made_up(3, num_evaluations=30)
    first, second, third = (replace(c, seconds=0.0) for c in report.candidates)
    alone = replace(third, split_seeds=tuple(100 + seed for seed in third.split_seeds))
    compared = (report.comparisons[0], compare_scores(first, alone))
    table = replace(report, candidates=(first, second, alone), comparisons=compared, order=(), path=())
    about: Dict[str, Any] = {"strategy": "", "stop": "", "splits": "", "scored": "", "sets": ()}
    return replace(table, stopped_by=None, adaptive=False, **about)


def by_documents(num_systems: int = 6) -> Report:
    """Systems that were asked about documents; the last but one has answered nothing, the last was withdrawn."""
    report = with_failures(made_up(num_systems, names=[LONG_NAME.format(0), *UGLY_NAMES], margin=0.01))
    systems = tuple(map(_system, report.candidates))
    about_runs: Dict[str, Any] = {
        "comparisons": (),
        "single_score": None,
        "development": None,
        "belief": "paired_measure",
        "stop": "enough_documents",
        "splits": "",
        "scored": "",
        "sets": (),
    }
    return replace(report, candidates=systems, words=DOCUMENT_WORDS, notes=(), **about_runs)


def _system(made: CandidateReport) -> CandidateReport:
    number = made.num_evaluations
    interval = None if made.withdrawn or made.mean is None else (made.mean - 0.1, made.mean + 0.05)
    asked: Dict[str, Any] = {"num_documents": number, "num_queries": number, "cost": 0.25 * number}
    return replace(made, measure=made.mean, **asked, interval=interval, development_scores=())


def all_made_up() -> Dict[str, Report]:
    """Every case to look at, by name."""
    return {
        "two": made_up(2),
        "twelve": with_failures(made_up(12, margin=0.005)),
        "forty": made_up(40, num_evaluations=2000),
        "forty_once": made_up(40, num_evaluations=40),
        "long_names": long_names(),
        "ugly": ugly(),
        "table": of_table(),
        "just_begun": just_begun(),
        "running": replace(made_up(3, num_evaluations=9), running=True, stopped_by=None),
        "documents": by_documents(),
    }


def screened(*, minimise: bool = False, second_objective: Optional[str] = "seconds") -> Report:
    """A selection that is the second stage of a search. The best score came with the fourth of five configs."""
    report = replace(made_up(2), minimise=minimise)
    scores = (0.2, 0.6, 0.5, 0.9, 0.7)
    names = [candidate.name for candidate in report.candidates]
    screening = ScreeningReport(
        num_points=25,
        num_failures=1,
        searcher="gp_ehvi",
        metric=Metric("m", minimise),
        seconds=100.0,
        finalists=(
            Finalist(names[0], 1, 0.9, place_after=2, mean_after=0.7, num_runs=4),
            Finalist(names[1], 2, 0.7, place_after=1, mean_after=0.8, num_runs=5),
        ),
        scores=scores,
        run_seconds=(10.0, 20.0, 30.0, 25.0, 15.0),
        second_objective=second_objective,
    )
    return replace(report, screening=screening)
