"""The first stage of a search: the best score over its runs, and its configs as lines over parallel axes."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.figure import BEST, OTHER, Figure, Look, alt_text, new_drawing
from fiesta_allennlp.reports.formats import shown_names
from fiesta_allennlp.reports.screening import ScreeningReport
from fiesta_allennlp.selection.summary import count_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

HEIGHT = 2.8
"""Inches."""

LEAST_SCORES = 2
DECADE = 10.0
"""Numbers above 0 that span at least this factor are drawn by logarithm."""

CHOSEN: Dict[str, Any] = {"color": BEST, "linewidth": 1.2, "alpha": 0.9}
SCREENED: Dict[str, Any] = {"color": OTHER, "linewidth": 0.5, "linestyle": "--", "alpha": 0.5}
"""The lines of finalists, and of the other configs."""

MOST_TICKS = 6
"""Of values on an axis; more are left out but for the ends."""


def draw_best_so_far(report: Report, look: Look) -> "Optional[Drawing]":
    """The score of each config as a point and the best so far as a line. None where nothing was screened."""
    from matplotlib.ticker import MaxNLocator

    screening = report.screening
    if screening is None or len(screening.scores) < LEAST_SCORES:
        return None
    figure = new_drawing(look, height=HEIGHT)
    axes = figure.add_subplot()
    runs = np.arange(1, len(screening.scores) + 1)
    axes.plot(runs, screening.scores, "o", color=OTHER, markersize=3, label="one config")
    axes.step(runs, screening.best_so_far, where="post", color=BEST, linewidth=1.6, label="best so far")
    axes.set(xlabel="finished runs of the screening", ylabel=f"validation {screening.metric.text}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.grid(color="0.93", linewidth=0.6)
    axes.legend(loc="best")
    return figure


def best_so_far_text(report: Report) -> str:
    best = _screening(report).best_so_far
    since = 1 + best.index(best[-1])
    middle = len(best) // 2
    told = [f"{best[middle - 1]:.4f} after {middle}"] if middle else []
    return alt_text(
        f"Best validation score over {count_text(len(best), 'run')} of the screening",
        [*told, f"{best[-1]:.4f} at the end, reached with run {since}"],
    )


def best_so_far_caption(report: Report) -> str:
    return (
        "The best validation score after each run of the screening. One run of a config includes its luck, so the best "
        "of many scores is higher than the mean of that config."
    )


def draw_parallel(report: Report, look: Look) -> "Optional[Drawing]":
    """A line for each config over one axis for each name of the space and one for the score; the finalists in colour.
    None where nothing was screened."""
    screening = report.screening
    if screening is None or len(screening.scores) < LEAST_SCORES or not screening.names:
        return None
    figure = new_drawing(look, height=HEIGHT)
    axes = figure.add_subplot()
    columns = [axis_of([point[index] for point in screening.points]) for index in range(len(screening.names))]
    columns.append(axis_of(list(screening.scores)))
    places = np.column_stack([places for places, _ in columns])
    cut = _least_of_finalists(screening)
    for row, score in sorted(enumerate(screening.scores), key=lambda entry: screening.metric.sign * entry[1]):
        style = CHOSEN if screening.metric.sign * score >= cut else SCREENED
        axes.plot(range(len(columns)), places[row], **style)
    for index, (_, ticks) in enumerate(columns):
        axes.axvline(index, color="black", linewidth=0.8)
        for place, text in ticks:
            axes.text(index + 0.03, place, text, fontsize="x-small", va="center", bbox=PAPER)
    names = [*short_names(screening.names), screening.metric.name]
    titles = shown_names(names, 10 if look.narrow else 20)
    axes.set_xticks(range(len(columns)), [titles[name] for name in names])
    axes.set_yticks([])
    axes.set_xlim(-0.1, len(columns) - 0.75)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.3}
"""Behind words that lines may run through."""


def short_names(names: Sequence[str]) -> List[str]:
    """The last keys of paths such as `trainer.optimizer.lr`, where they differ."""
    short = [name.rpartition(".")[2] for name in names]
    return short if len(set(short)) == len(names) else list(names)


Axis = Tuple[np.ndarray, List[Tuple[float, str]]]
"""Where each value stands, in [0, 1], and the values that are written, with their places."""


def axis_of(values: Sequence[Any]) -> Axis:
    """Numbers by size, by logarithm where they span a decade; anything else in the order of its text. Shape of the
    places: `(num_values,)`."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        numbers = np.array(values, dtype=float)
        log = numbers.min() > 0 and numbers.max() >= DECADE * numbers.min()
        raw = np.log(numbers) if log else numbers
        scaled = (raw - raw.min()) / (np.ptp(raw) or 1.0)
        texts = {float(place): f"{number:.4g}" for place, number in zip(scaled, numbers, strict=True)}
    else:
        kinds = sorted({str(value) for value in values})
        place_of = {kind: index / max(len(kinds) - 1, 1) for index, kind in enumerate(kinds)}
        scaled = np.array([place_of[str(value)] for value in values])
        texts = {place: kind for kind, place in place_of.items()}
    ends = {min(texts), max(texts)}
    kept = sorted(texts) if len(texts) <= MOST_TICKS else sorted(ends)
    return scaled, [(place, texts[place]) for place in kept]


def _least_of_finalists(screening: ScreeningReport) -> float:
    """The least score of a finalist, as higher is better."""
    return min((screening.metric.sign * f.score_before for f in screening.finalists), default=np.inf)


def _screening(report: Report) -> ScreeningReport:
    assert report.screening is not None
    return report.screening


def parallel_text(report: Report) -> str:
    screening = _screening(report)
    best = int(np.argmax(screening.metric.sign * np.array(screening.scores)))
    values = ", ".join(f"{name} {value}" for name, value in zip(screening.names, screening.points[best], strict=True))
    lead = f"{count_text(len(screening.scores), 'config')} as lines over {len(screening.names) + 1} axes"
    return alt_text(lead, [f"The best validation score, {screening.scores[best]:.4f}, has {values}"])


def parallel_caption(report: Report) -> str:
    return (
        "The screened configs: each line is a config, from its values to its validation score. The finalists are blue."
    )


def draw_front(report: Report, look: Look) -> "Optional[Drawing]":
    """Score against seconds, and the line of the configs that no other one beats in both. None where seconds were no
    objective."""
    screening = report.screening
    if screening is None or not screening.front:
        return None
    figure = new_drawing(look, height=HEIGHT)
    axes = figure.add_subplot()
    front = sorted(screening.front, key=lambda row: screening.run_seconds[row])
    axes.plot(screening.run_seconds, screening.scores, "o", color=OTHER, markersize=3, label="one config")
    line = [(screening.run_seconds[row], screening.scores[row]) for row in front]
    axes.step(*zip(*line, strict=True), "o-", where="post", color=BEST, markersize=5, label="Pareto front")
    axes.set(xlabel="seconds of the run", ylabel=f"validation {screening.metric.text}")
    axes.grid(color="0.93", linewidth=0.6)
    axes.legend(loc="best")
    return figure


def front_text(report: Report) -> str:
    screening = _screening(report)
    told = [
        f"{screening.scores[row]:.4f} in {screening.run_seconds[row]:.1f} s" for row in screening.front[:MOST_TICKS]
    ]
    lead = f"Validation scores and seconds of {count_text(len(screening.scores), 'config')}"
    return alt_text(lead, [f"{len(screening.front)} are on the Pareto front", *told])


def front_caption(report: Report) -> str:
    return "Validation score and seconds of every screened config. No config beats one of the front in both."


FRONT = Figure("pareto_front", draw_front, front_text, front_caption)
BEST_SO_FAR = Figure("best_so_far", draw_best_so_far, best_so_far_text, best_so_far_caption)
PARALLEL = Figure("parallel_coordinates", draw_parallel, parallel_text, parallel_caption)
