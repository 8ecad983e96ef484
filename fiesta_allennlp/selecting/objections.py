"""What a command refuses unless you accept it by name, with `--allow NAME`."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Sequence

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import COUNT_PREFIX, UNKNOWN_PREFIX, have_two_units
from fiesta_allennlp.core.options import option

if TYPE_CHECKING:
    from fiesta_allennlp.core.records import Evaluation, History  # --help does without

MIN_REPEATS = 3
"""The least number of runs that repeat by more than chance."""


@dataclass(frozen=True)
class Objection:
    """A doubt about candidates or scores. Unless it is allowed, candidates end a command, and scores leave a selection
    without a winner.

    Attributes:
        name: what `--allow` takes.
        accepts: what is then accepted, for the help; empty if nothing can be.
        test: yields what a history has that is doubtful.
        sentence: what is asked about it, or what to do.
        is_kept: whether a selection remembers it. If not, it is for one call.
    """

    name: str
    accepts: str
    test: Callable[["History"], Iterable[str]] = lambda history: ()
    sentence: str = ""
    is_kept: bool = True

    def check(self, reasons: Iterable[str], allowed: Collection[str]) -> None:
        """Refuse the first of the `reasons`, which need not be looked for if this is allowed. A reason ends with
        another remedy and without a full stop.

        Raises:
            ConfigError: if there is a reason and the name of this objection is not among those `allowed`.
        """
        for reason in () if self.name in allowed else reasons:
            raise ConfigError(f"{reason}, or add --allow {self.name}.")


def _find_repeats(history: "History") -> Iterator[str]:
    """Yield which runs repeat, although their seeds differ: those of a candidate, or those of two. Scores of single
    items, which are 0 or 1, may do so."""
    runs = {name: history.evaluations_of(name) for name in history.candidates}
    if {run.score for run in history.evaluations} == {0.0, 1.0}:
        return
    repeated = [name for name, own in runs.items() if len(own) >= MIN_REPEATS and _are_equal(own)]
    for name in repeated:
        yield f"all {len(runs[name])} runs of {name} are equal ({runs[name][0].metric} {runs[name][0].score:g})"
    others = {name: history.scores(name).tolist() for name in runs if name not in repeated}
    for first, second in combinations(others, 2):
        number = min(len(others[first]), len(others[second]))
        if number >= MIN_REPEATS and others[first][:number] == others[second][:number]:
            yield f"the first {number} scores of {first} and {second} are equal (the same model?)"


def _are_equal(runs: Sequence["Evaluation"]) -> bool:
    """Return whether all runs report the same score, and the same metrics as far as they have any."""
    metrics: List[Mapping[str, float]] = [run.metrics for run in runs if run.metrics]
    return len({run.score for run in runs}) == 1 and all(other == metrics[0] for other in metrics)


def _find_two_units(history: "History") -> Iterator[str]:
    if have_two_units([run.score for run in history.evaluations]):
        yield "some scores look like fractions, others like percents"


def _find_unknown_labels(history: "History") -> Iterator[str]:
    for name in history.candidates:
        metrics = [item for run in history.evaluations_of(name) for item in run.metrics.items()]
        counts = [[int(n) for key, n in metrics if key.startswith(prefix)] for prefix in (UNKNOWN_PREFIX, COUNT_PREFIX)]
        if 0 < sum(counts[0]) == sum(counts[1]):
            yield f"no answer of {name} is a gold label"


UNSEEDED = Objection(
    "unseeded",
    "a program whose command does not use {seed}, and runs that repeat",
    _find_repeats,
    "Is the seed used, or are results cached?",
)
PRETRAINED = Objection("pretrained", "with random splits, starting weights that were trained on the same files")
REMOVED = Objection("removed", "with --recover, leaving out candidates, whose runs are kept", is_kept=False)
UNITS = Objection(
    "units", "scores of which some look like fractions, others like percent", _find_two_units, "Correct them."
)

LABELS = Objection("labels", "", _find_unknown_labels, "Map them with its option 'labels', or leave it out.")

OBJECTIONS = (UNSEEDED, PRETRAINED, REMOVED, UNITS, LABELS)


def find_questions(history: "History", allowed: Collection[str]) -> Iterator[str]:
    """Yield what is asked about the scores before a winner is named, for each objection that is not allowed."""
    for objection in OBJECTIONS:
        facts = "" if objection.name in allowed else "; ".join(objection.test(history))
        if facts:
            remedy = f" --allow {objection.name} accepts them." if objection.accepts else ""
            yield f"{facts[0].upper()}{facts[1:]}. {objection.sentence}{remedy}"


def allow_option(group: str, objections: Sequence[Objection] = OBJECTIONS) -> Any:
    """Declare the option `--allow`, below this heading, for those of some objections that can be accepted."""
    accepted = {objection.name: objection.accepts for objection in objections if objection.accepts}
    texts = "; ".join(f"{name}: {text}" for name, text in accepted.items())
    kind: Dict[str, Any] = {"choices": tuple(accepted), "is_repeated": True, "is_added": True, "is_rare": True}
    return option((), f"accept what is refused otherwise; {texts}", group=group, metavar="NAME", **kind)
