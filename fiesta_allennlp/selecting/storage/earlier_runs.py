"""Runs that were made before a selection began, and that are taken into it."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Collection, Tuple

from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.core.texts import count_text

BROUGHT_CAUTION = (
    "fiesta_allennlp cannot check that the same code made these runs on the same data, or that nobody picked them by "
    "their scores."
)


@dataclass(frozen=True)
class BroughtRuns:
    """The finished and failed runs of a table of scores, in its order.

    Their requests have negative replicates and split seeds, so that they differ from all runs of the selection. Runs
    with equal split seeds share a split of their own; unless the table `has_splits`, each has one. `left_out` are the
    candidates of the table that the selection does not have.
    """

    file: str
    digest: str
    has_splits: bool
    outcomes: Tuple[Outcome, ...]
    left_out: Tuple[str, ...] = ()

    def of_candidates(self, names: Collection[str], metric: str, *, on_official_splits: bool) -> "BroughtRuns":
        """Return the runs of these candidates, scored by `metric`. Raise a `ConfigError` if there is none, or if their
        splits are unknown."""
        own_names = dict.fromkeys(outcome.request.candidate for outcome in self.outcomes)
        if not own_names.keys() & set(names):
            raise ConfigError(
                f"--scores {self.file}: no candidate of the table is one of this selection. The table has "
                f"{join_some(list(own_names)) or 'none'}, the selection {join_some(list(names))}. Rename one side."
            )
        if not self.has_splits and not on_official_splits:
            raise ConfigError(
                f"--scores {self.file}: on random splits, the table must say which runs share a split. Add a "
                "column split, or compare with --splits official."
            )
        outcomes = (outcome for outcome in self.outcomes if outcome.request.candidate in names)
        return replace(
            self,
            outcomes=tuple(replace(o, metric=metric) if isinstance(o, Evaluation) else o for o in outcomes),
            left_out=tuple(name for name in own_names if name not in names),
        )

    @property
    def sentences(self) -> Tuple[str, ...]:
        """What is taken, in words."""
        finished, failed = (
            Counter(outcome.request.candidate for outcome in self.outcomes if isinstance(outcome, kind))
            for kind in (Evaluation, Failure)
        )
        texts = [
            f"{count_text(counts.total(), noun)} ({join_some([f'{name} {count}' for name, count in counts.items()])})"
            for counts, noun in ((finished, "run"), (failed, "failed run"))
            if counts
        ]
        left_out = f" Left out: {join_some(list(self.left_out))}." if self.left_out else ""
        return f"Taken from {self.file}: {' and '.join(texts)}.{left_out}", BROUGHT_CAUTION
