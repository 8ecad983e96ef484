"""The result of a selection: one record, which is the content of `selection.json`."""

from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Literal, Mapping, Optional, Tuple, Type, TypeVar, Union, cast

import numpy as np

from fiesta_allennlp.choosing.strategy import DECIDED_REASONS, Decision
from fiesta_allennlp.choosing.t_tests import find_tiers
from fiesta_allennlp.core.choice_settings import CONFIDENCE, OFFICIAL
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.core.files import check_format, read_json, write_json_file
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.selecting.provenance import MachineRuns, count_machine_runs
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, SeenLead
from fiesta_allennlp.selecting.results.candidate_table import JSON, Printable, candidate_values, num_decimals
from fiesta_allennlp.selecting.results.facts import DecisionFacts, computed_facts, fact_values, prob_first_wins
from fiesta_allennlp.selecting.results.verdict import smallest_set
from fiesta_allennlp.version import __version__

FORMAT = 3
"""The number of the format of `selection.json`, raised where a key is renamed or removed."""


Verdict = Literal["best", "equal", "open", "better", "no worse", "worse"]
"""The ends of a selection, and those of a gate, which may be open, too."""

ResultType = TypeVar("ResultType", bound="Result")


@dataclass(frozen=True)
class Words:
    """The nouns of a result for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"
    model: str = "model"

    def evaluation_noun(self, count: int) -> str:
        return self.evaluation if count == 1 else self.evaluations


@dataclass(frozen=True, repr=False)
class Result(DecisionFacts, Printable):
    """The content of `selection.json`, together with the directory of the selection.

    Its facts about the decision are those of `DecisionFacts`, too.

    Attributes:
        leading: the candidate that leads, decided or not. None if nothing is known yet.
        stopped_by: why the selection ended, as in `Decision`.
        metric: the name of the metric, with a minus if it is minimised.
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

    @classmethod
    def from_decision(
        cls: Type[ResultType],
        history: History,
        decision: Decision,
        metric: Metric,
        *,
        num_parameters: Mapping[str, Optional[int]] = {},
        study_scores: Mapping[str, Optional[float]] = {},
        **further_fields: Any,
    ) -> ResultType:
        """Return the result of a decision. `further_fields` are added, or take the place of those computed here."""
        names = history.active if decision.compared is None else decision.compared
        compared = replace(history, withdrawn=frozenset(history.candidates).difference(names))
        computed_fields = {**computed_facts(compared, decision, cls), "machines": count_machine_runs(history)}
        tiers = find_tiers(decision.posterior, names, further_fields.get("target", CONFIDENCE))
        candidates = tuple(
            cls.candidate_class.from_history(
                history,
                decision,
                name,
                num_parameters=num_parameters.get(name),
                study_score=study_scores.get(name),
                tier=tiers.get(name, ""),
            )
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
        own_fields = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "directory"}
        columns = candidate_values(self, JSON)
        entries = [{**values, **vars(c)} for values, c in zip(columns, self.candidates, strict=True)]
        return {"format": FORMAT, "version": __version__, **fact_values(self), **own_fields, "candidates": entries}

    def scores(self) -> Dict[str, List[float]]:
        """Return the scores of every candidate, by replicate."""
        return {candidate.name: list(candidate.scores) for candidate in self.candidates}

    @property
    def verdict(self) -> Verdict:
        """The end: `best` names a winner; `equal` means that all pairs of `best_set` are within half a run-to-run sd
        with the target confidence; anything else is `open`. Against a baseline, it is that of `GateDecision`."""
        if self.gate is not None:
            return "open" if self.questions else cast(Verdict, self.gate.verdict)
        is_sure = self.stopped_by == "documents" and (self.confidence or 0.0) >= self.target
        if is_sure or self.stopped_by in DECIDED_REASONS:
            return "best"
        is_over = self.stopped_by not in (None, "failures", "interrupted") and not self.running
        return "equal" if is_over and not self.questions and (self.prob_equal or 0.0) >= self.target else "open"

    @property
    def decided(self) -> bool:
        """True if the selection named a winner, by its probability or at the end of a budget."""
        return self.verdict == "best"

    @property
    def is_decided(self) -> bool:
        """True if the selection reached its target confidence."""
        return self.decided and self.stopped_by == "confidence"

    @property
    def best(self) -> Optional[str]:
        """The winner. None until it is decided."""
        return self.leading if self.decided else None

    @property
    def best_set(self) -> Tuple[str, ...]:
        """The smallest set of candidates whose P(best) together reaches `target`, the most probable first; empty while
        P(best) is unknown. Several can be in it beside a winner within a margin, or of a budget."""
        return smallest_set({c.name: c.prob_best for c in self.candidates if c.prob_best is not None}, self.target)

    @property
    def average_text(self) -> str:
        """What the means are an average of, such as ` on the average of these 3 data sets`; empty without tasks."""
        return f" on the average of these {len(self.tasks)} data sets" if self.tasks else ""

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

    @cached_property
    def decimals(self) -> int:
        """The decimals of scores in all tables and sentences."""
        return num_decimals(self.candidates)

    @property
    def compared(self) -> Tuple[Any, ...]:
        """The ranked candidates, if their scores are those of whole runs on one task, so that two can be compared by
        them."""
        return () if self.tasks else self.ranked

    @property
    def confidence(self) -> Optional[float]:
        """The probability that `leading` is the best (within `margin`), or None if unknown."""
        return self.leader and self.leader.prob_within_margin

    @cached_property
    def runs_to_claim(self) -> Optional[int]:
        """How many fresh runs of each it takes to claim that the winner is better than its rival; None if unknown."""
        if not self.is_decided or self.running or not self.compared or self.rival is None:
            return None
        is_paired, sign = not self.on_official_splits, self.parsed_metric.sign
        return SeenLead.of(self.leader, self.rival, sign=sign, is_paired=is_paired).num_runs_for_claim()

    @property
    def single_runs_wrong(self) -> Optional[float]:
        """How often one run of each candidate that takes part, whatever its split, would have named another candidate
        than the one that leads. It is exact, over all ways to draw a recorded score of each. None where fewer than two
        have scores, or the leading one has none."""
        contenders = [candidate for candidate in self.compared if candidate.scores and not candidate.withdrawn]
        if len(contenders) < 2 or contenders[0].name != self.leading:
            return None
        return 1 - prob_first_wins([self.parsed_metric.sign * np.array(candidate.scores) for candidate in contenders])

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
        return Words()
