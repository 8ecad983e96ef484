"""In which order the candidates of a report are shown, and under which names where room is short."""

from collections import Counter
from typing import Callable, Dict, Sequence, Tuple

from fiesta_allennlp.reports.content import CandidateReport, Report


def ranked(report: Report) -> Tuple[CandidateReport, ...]:
    """By falling P(best), then by mean, `report.best` first and withdrawn candidates last; equal ones as given."""
    return tuple(sorted(report.candidates, key=lambda candidate: _place(candidate, report)))


def _place(candidate: CandidateReport, report: Report) -> "Tuple[bool, bool, float, float]":
    prob_best = -1.0 if candidate.prob_best is None else candidate.prob_best
    mean = float("-inf") if candidate.mean is None else candidate.mean
    return candidate.name != report.best, candidate.withdrawn, -prob_best, -mean


def shown_names(
    names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool] = str.isprintable
) -> Dict[str, str]:
    """Names of at most `length` characters, cut in the middle, for long ones often differ at the ends only.

    Names that would look the same are told apart by their place, as in `#3 bert…base`. Characters without a glyph are
    shown as a box.

    # Parameters

    has_glyph : whether one character can be drawn.
    """
    clean = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    shown = {name: _cut(text, length) for name, text in clean.items()}
    often = Counter(shown.values())
    for place, name in enumerate(names, start=1):
        if often[shown[name]] > 1:
            lead = f"#{place} "
            shown[name] = lead + _cut(clean[name], length - len(lead))
    return shown


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]
