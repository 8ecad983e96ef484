"""The result of the first stage of a search, as `screening/selection.json` has it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional, Tuple, Type

from fiesta_allennlp.selection.result import CandidateResult, Result, written


@dataclass(frozen=True)
class ScreenedConfig(CandidateResult):
    """A config that ran once, with the `values` of its point."""

    values: str = ""

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any]) -> "ScreenedConfig":
        """Make the record of an entry. Earlier versions wrote the score alone."""
        score = entry["score"]
        ran = {"num_evaluations": int(score is not None), "mean": score}
        return super().of_entry({**ran, **entry, "seconds": entry["seconds"] or 0.0})

    @written
    def score(self) -> Optional[float]:
        """The score of its run; None if that failed."""
        return self.mean


@dataclass(frozen=True)
class ScreeningResult(Result):
    """The content of `screening/selection.json`: the configs that ran, in the order in which they are finalists. Those
    that failed come last."""

    candidates: Tuple[ScreenedConfig, ...]
    candidate_class: ClassVar[Type[CandidateResult]] = ScreenedConfig
