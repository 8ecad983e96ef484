"""Figures. matplotlib is imported inside the functions, for it takes half a second and most commands draw nothing."""

from pathlib import Path
from typing import Any, Mapping, Sequence

FIGURE_ENDINGS = (".png", ".pdf")


def draw_evaluations(num_evaluations: Sequence[int], summary: Mapping[str, Any], path: Path) -> None:
    """The distribution of the number of evaluations over the repetitions of a replay, with its mean and its 5 to 95 %
    range.

    # Parameters

    num_evaluations : of every repetition.
    summary : the content of the replay's JSON file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(num_evaluations, bins="auto", color="0.75")
    quantiles, mean = summary["evaluations"]["quantiles"], summary["evaluations"]["mean"]
    axes.axvspan(
        quantiles["5"], quantiles["95"], zorder=0, alpha=0.15, label=f"5-95 %: {quantiles['5']} to {quantiles['95']}"
    )
    axes.axvline(mean, color="black", label=f"mean {mean:.1f}")
    axes.set_xlabel("trainings needed")
    axes.set_ylabel(f"repetitions (of {summary['repetitions']})")
    axes.set_title(
        f"{summary['strategy']['type']}, {summary['belief']['type']}, {summary['splits']} splits: "
        f"{summary['correct']:.1%} correct",
        fontsize="medium",
    )
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
