"""The conclusion of a strategy from a history."""

import math
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from fiesta_allennlp.choosing.beliefs.belief import Posterior

DECIDED_REASONS = ("confidence", "budget", "documents")
"""The reasons for which a selection stops with a winner."""


@dataclass(frozen=True)
class ClassErrors:
    """How many winners of a class of P(best) and lead were wrong in simulated selections, of how many."""

    wrong: int
    winners: int


@dataclass(frozen=True)
class GateVerdict:
    """The verdict about a candidate against a baseline: `better`, `no worse`, `worse` or `open`.

    `difference` is its mean minus that of the baseline, as the metric reports them. `prob_better` is the probability
    that it is better, and `prob_no_worse` that it is not worse by more than the drop that is allowed. After the runs so
    far, the gate decides at a probability of error of at most `allowed_error`.
    """

    candidate: str
    verdict: str
    difference: float
    prob_better: float
    prob_no_worse: float
    allowed_error: float


@dataclass(frozen=True)
class GateDecision:
    """The verdicts about all candidates except the baseline `against`; none while starting runs are missing.

    `max_drop` is the drop that is allowed, in units of the score. `unjudged` candidates have left with too few scores.
    """

    against: str
    max_drop: float
    verdicts: Tuple[GateVerdict, ...] = ()
    unjudged: Tuple[str, ...] = ()

    @property
    def open(self) -> Tuple[str, ...]:
        """The candidates about which the verdict is open."""
        return tuple(each.candidate for each in self.verdicts if each.verdict == "open")

    @property
    def verdict(self) -> str:
        """The verdict about all of them: `worse` if one is, or else `open` if one is, `better` if all are."""
        words = {each.verdict for each in self.verdicts}.union(["open"] if self.unjudged or not self.verdicts else [])
        return next(word for word in ("worse", "open", "no worse", "better") if word in words)


@dataclass(frozen=True)
class Decision:
    """The conclusion of a strategy from a history.

    `best` is `None` while nothing can be concluded. `prob_best` has an entry for every active candidate, or is empty if
    some of them have too few runs for the model of the scores. `prob_within_margin` is P(mean >= best mean - margin),
    with the same entries; with `margin` 0 both are equal. `stopped_by` is `None` while there is more to do, otherwise
    `confidence`, `budget`, `max_evaluations`, `max_hours`, `documents` (no more are left), `failures` (fewer than two
    candidates are left), `no_variation` (all runs of each candidate are equal) or `interrupted`. With `gave_up`, the
    runs that the limit left were too few to go on for. `lacking` names the candidates that must run again before `best`
    is named, one for each run, even though its probability is high enough. `rival` is the other candidate that is most
    probably better than `best`. `num_units` are the units of the two, of the one that has fewer: only of those that get
    further runs, and infinite if neither does. `posterior` is `None` while the model of the scores needs more runs.

    The last fields are those of `fiesta_allennlp.selecting.results.verdict.judge`: `compared` are the candidates of the
    posterior if these are not the active ones. `unresolved` candidates have left and could still be the best.
    `questions` are about the scores. With one of them, `stopped_by` has its name instead of a reason for a winner.
    `prob_equal` is the least probability, over all pairs of those that could be the best, that two are within half a
    run-to-run sd. `class_errors` are the measured errors of winners such as `best`.

    `gate` has the verdicts against a baseline, where these are asked for instead of the best.
    """

    best: Optional[str]
    margin: float = 0.0
    stopped_by: Optional[str] = None
    prob_best: Mapping[str, float] = field(default_factory=dict)
    prob_within_margin: Mapping[str, float] = field(default_factory=dict)
    lacking: Tuple[str, ...] = ()
    gave_up: bool = False
    rival: Optional[str] = None
    num_units: float = math.inf
    posterior: Optional[Posterior] = field(default=None, repr=False, compare=False)
    compared: Optional[Tuple[str, ...]] = None
    unresolved: Tuple[str, ...] = ()
    questions: Tuple[str, ...] = ()
    prob_equal: Optional[float] = None
    gate: Optional[GateDecision] = None
    class_errors: Optional[ClassErrors] = None

    @property
    def confidence(self) -> Optional[float]:
        """The probability that `best` is the best (within `margin`).

        `None` while the model of the scores has too few runs to compute it.
        """
        return self.prob_within_margin.get(self.best) if self.best is not None else None
