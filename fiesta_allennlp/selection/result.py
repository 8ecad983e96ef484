"""The result of a selection: one record, which is the content of `selection.json`."""

import csv
from collections import Counter
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union

import numpy as np

from fiesta_allennlp.core.defaults import CONFIDENCE
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.core.files import check_format, from_csv_cell, read_json, write_json_file
from fiesta_allennlp.core.records import CredibleMargin, Decision, History, PairAlone
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.probability.collapsed import find_collapsed_runs
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.candidate_table import JSON, candidate_values
from fiesta_allennlp.selection.environment import MachineRuns, count_machine_runs
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.showing import Printable
from fiesta_allennlp.selection.t_tests import compare_on_shared_splits
from fiesta_allennlp.selection.texts import RUN_WORDS, Words
from fiesta_allennlp.version import __version__

FORMAT = 2
"""The number of the format of `selection.json`, raised where a key is renamed or removed."""


DECIDED_REASONS = ("confidence", "budget", "documents")
"""The reasons for which a selection stops with a winner."""

MIN_MARGIN_SHARE = 1e-6
"""The smallest margin to suggest, as a share of the range of all scores."""


ResultType = TypeVar("ResultType", bound="Result")


@dataclass(frozen=True, repr=False)
class Result(Printable):
    """The content of `selection.json`, together with the directory of the selection.

    Attributes:
        leading: the candidate that leads, decided or not. None if nothing is known yet.
        stopped_by: why the selection ended, as in `Decision`.
        metric: the name of the metric, with a minus if it is minimised.
        margin: the margin within which a candidate is as good as the best.
        target: the target confidence, or its default if a budget ends the selection.
        expected_loss: what choosing `leading` costs on average, in units of the metric.
        pair_alone: `leading` against its `runner_up` alone, the two in the same posterior: its probability `alone`, the
            one `together` with all candidates, and the one `required` after these runs. See `PairAlone`.
        lacking: if `leading` reached the target confidence, but was not named because candidates had too few runs: the
            number of runs that each still needs.
        credible_margin: the smallest `margin` that would have decided an inconclusive selection, with the `best`
            candidate at that margin.
        undecided: of an inconclusive selection, the condition of the stopping rule that is `unmet`, the `target`, the
            probability `required` after these runs, and whether it `gave_up` before the limit. See `Undecided`.
        plain_loop: once it is decided, an estimate of the runs of a loop that runs all candidates equally often.
        collapsed: runs far below (or above) their candidate's others, by candidate.
        ahead_on_shared_splits: `leading` compared on shared splits with the other candidate of the best mean.
        splits: how runs came by their splits; empty for a table of scores with splits.
        score: the scored set, `test` or `validation`.
        min_score: the score that runs must not miss.
        sets: the names of the data sets; empty if only the programs know the data, and None if that is unknown.
        seed: the master random seed.
        running: whether the selection was at work when the result was made.
        machines: the runs of each machine.
    """

    leading: Optional[str]
    stopped_by: Optional[str]
    metric: str
    candidates: Tuple[CandidateResult, ...]
    margin: float = 0.0
    target: float = CONFIDENCE
    expected_loss: Optional[float] = None
    pair_alone: Optional[PairAlone] = None
    lacking: Mapping[str, int] = field(default_factory=dict)
    credible_margin: Optional[Mapping[str, Any]] = None
    undecided: Optional[Mapping[str, Any]] = None
    plain_loop: Optional[Mapping[str, Any]] = None
    collapsed: Tuple[Mapping[str, Any], ...] = ()
    ahead_on_shared_splits: Optional[Mapping[str, Any]] = None
    strategy: Mapping[str, Any] = field(default_factory=dict)
    belief: Mapping[str, Any] = field(default_factory=dict)
    splits: str = ""
    score: str = "test"
    min_score: Optional[float] = None
    sets: Optional[Tuple[str, ...]] = None
    seed: str = ""
    running: bool = False
    machines: Tuple[MachineRuns, ...] = ()
    directory: Path = Path()

    candidate_class: ClassVar[Type[CandidateResult]] = CandidateResult
    by_documents: ClassVar[bool] = False
    stored_properties: ClassVar[Tuple[str, ...]] = (
        "best",
        "best_set",
        "confidence",
        "num_evaluations",
        "num_failures",
        "seconds",
        "seconds_of_equal_allocation",
        "without_runs",
    )
    """The properties that `selection.json` has too, for its readers."""

    @classmethod
    def from_decision(
        cls: Type[ResultType],
        history: History,
        decision: Decision,
        metric: Metric,
        *,
        num_parameters: Mapping[str, Optional[int]] = {},
        **further_fields: Any,
    ) -> ResultType:
        """Return the result of a decision. `further_fields` are added, or take the place of those computed here."""
        computed_fields = {
            "margin": decision.margin,
            "expected_loss": decision.expected_loss,
            "pair_alone": decision.pair_alone,
            "lacking": dict(Counter(decision.lacking)),
            "credible_margin": _credible_margin_entry(history, decision.credible_margin),
            "undecided": decision.undecided and asdict(decision.undecided),
            "plain_loop": decision.plain_loop and asdict(decision.plain_loop),
            "collapsed": find_collapsed_runs(history, minimise=metric.minimise),
            "ahead_on_shared_splits": compare_on_shared_splits(history, decision.best, metric.sign),
            "machines": count_machine_runs(history),
        }
        candidates = tuple(
            cls.candidate_class.from_history(history, decision, name, num_parameters=num_parameters.get(name))
            for name in history.candidates
        )
        return cls(
            decision.best, decision.stopped_by, metric.option_text, candidates, **{**computed_fields, **further_fields}
        )

    @classmethod
    def read(cls: Type[ResultType], directory: Union[str, Path]) -> ResultType:
        """Read the result of a selection.

        Raises:
            StoreError: if the directory holds no readable result.
        """
        path = RunDirectory(Path(directory)).selection_json
        try:
            content = read_json(path)
            check_format(path, content.get("format"), FORMAT, version=content.get("version"))
            return replace(build_record(cls, content), directory=Path(directory))
        except (OSError, ValueError, TypeError, AttributeError, ConfigError) as error:
            raise StoreError(
                f"{path} cannot be read as the result of a selection: {error}. Pass the directory of a finished "
                "selection, or resume it with recover=True."
            ) from error

    def write(self) -> None:
        """Write `selection.json` into the directory, in one step."""
        path = RunDirectory(self.directory).selection_json
        write_json_file(path, self.content(), indent=2, allow_nan=False, default=asdict)

    def content(self) -> Dict[str, Any]:
        """Return the content of `selection.json`. Its candidates have their fields and the columns of tables."""
        content = {"format": FORMAT, "version": __version__}
        content.update({name: getattr(self, name) for name in self.stored_properties})
        content.update({f.name: getattr(self, f.name) for f in fields(self) if f.name != "directory"})
        columns = candidate_values(self, JSON)
        entries = [{**values, **vars(c)} for values, c in zip(columns, self.candidates, strict=True)]
        return {**content, "candidates": entries}

    def scores(self) -> Dict[str, List[float]]:
        """Return the scores of every candidate, in the order in which they arrived."""
        scores: Dict[str, List[float]] = {candidate.name: [] for candidate in self.candidates}
        with RunDirectory(self.directory).evaluations_csv.open(encoding="utf-8", newline="") as csv_file:
            for row in csv.DictReader(csv_file):
                if row["status"] == "finished":
                    scores[from_csv_cell(row["candidate"])].append(float(row["score"]))
        return scores

    @property
    def decided(self) -> bool:
        """True if the selection named a winner, by its probability or at the end of a budget."""
        return self.stopped_by in DECIDED_REASONS

    @property
    def is_decided(self) -> bool:
        """True if the selection reached its target confidence."""
        return self.stopped_by == "confidence"

    @property
    def best(self) -> Optional[str]:
        """The winner. None until it is decided."""
        return self.leading if self.decided else None

    @property
    def best_set(self) -> Tuple[str, ...]:
        """The smallest set of candidates whose P(best) together reaches `target`, the most probable first; only the
        winner once it is named, and empty while P(best) is unknown."""
        if self.best is not None:
            return (self.best,)
        chances = {c.name: c.prob_best for c in self.active if c.prob_best is not None}
        names = sorted(chances, key=lambda name: -chances[name])
        for size in range(1, len(names) + 1):
            if sum(chances[name] for name in names[:size]) >= self.target:
                return tuple(names[:size])
        return tuple(names)

    @property
    def leader(self) -> Any:
        """The candidate that leads."""
        return next((candidate for candidate in self.candidates if candidate.name == self.leading), None)

    @property
    def rival(self) -> Any:
        """The other candidate of the best mean that takes part, None if there is none."""
        rivals = (c for c in self.ranked if c.name != self.leading and not c.withdrawn and c.mean is not None)
        return next(rivals, None)

    @property
    def active(self) -> Tuple[CandidateResult, ...]:
        """The candidates that take part."""
        return tuple(candidate for candidate in self.candidates if not candidate.withdrawn)

    @cached_property
    def ranked(self) -> Tuple[Any, ...]:
        """The candidates by the better mean; `leading` comes first, and those that are out come last."""

        def rank_key(candidate: Any) -> Tuple[bool, bool, float]:
            mean = candidate.measure if self.by_documents else candidate.mean
            gain = float("-inf") if mean is None else self.parsed_metric.sign * mean
            return candidate.name != self.leading, candidate.withdrawn, -gain

        return tuple(sorted(self.candidates, key=rank_key))

    @property
    def compared(self) -> Tuple[Any, ...]:
        """The ranked candidates, if their scores are those of whole runs, so that two can be compared by them."""
        return self.ranked

    @property
    def confidence(self) -> Optional[float]:
        """The probability that `leading` is the best (within `margin`), or None if unknown."""
        return self.leader and self.leader.prob_within_margin

    @property
    def num_evaluations(self) -> int:
        return sum(candidate.num_evaluations for candidate in self.candidates)

    @property
    def num_brought(self) -> int:
        """The number of runs that were made before the selection began."""
        return sum(candidate.num_brought for candidate in self.candidates)

    @property
    def num_failures(self) -> int:
        return sum(candidate.failures for candidate in self.candidates)

    @property
    def without_runs(self) -> Tuple[str, ...]:
        """The candidates that take part and have no finished run."""
        return tuple(candidate.name for candidate in self.active if not candidate.num_evaluations)

    @property
    def seconds(self) -> float:
        """The sum of the run times of all workers."""
        return sum(candidate.seconds for candidate in self.candidates)

    @property
    def seconds_of_equal_allocation(self) -> Optional[float]:
        """The cost of evaluating every candidate as often as the leading one: n_best sum_i s_i, where s_i is the mean
        seconds of a run of candidate i. Candidates without a run are excluded. None if nobody leads."""
        if self.leader is None or not self.leader.num_evaluations:
            return None
        return self.leader.num_evaluations * sum(candidate.mean_seconds or 0.0 for candidate in self.candidates)

    @cached_property
    def parsed_metric(self) -> Metric:
        return Metric.parse(self.metric)

    @property
    def metric_name(self) -> str:
        return self.parsed_metric.name

    @property
    def metric_text(self) -> str:
        """The metric's name, with a note if it is minimised."""
        return self.parsed_metric.display_name

    @property
    def minimise(self) -> bool:
        return self.parsed_metric.minimise

    @property
    def scored(self) -> str:
        """The scored set, empty where only you or the programs know it."""
        return self.score if self.sets or self.score == "validation" else ""

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def words(self) -> Words:
        """The nouns for its candidates and runs."""
        return RUN_WORDS


def _credible_margin_entry(history: History, margin: Optional[CredibleMargin]) -> Optional[Dict[str, Any]]:
    """Return the margin that would have decided; None if it is as large as the range of all scores, so that any
    candidate would do, or far below the differences between them."""
    scores = [evaluation.score for evaluation in history.evaluations]
    score_range = float(np.ptp(scores)) if scores else 0.0
    is_informative = margin is not None and MIN_MARGIN_SHARE * score_range <= margin.margin < score_range
    return asdict(margin) if margin is not None and is_informative else None
