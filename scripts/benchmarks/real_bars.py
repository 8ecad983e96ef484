"""The picture of the README: how many named winners are wrong, of 10 runs each and of the default."""

from dataclasses import dataclass
from typing import Iterator, List, Sequence

from common import ROOT, add_up
from real_results import GAP_LIMITS, GAPS, OPENED, SETS, ResultRow, count_runs, read_results

PICTURE = ROOT / "docs" / "pictures" / "bars.svg"
INK, GREY = "#222", "#666"
COLOURS = {"10 runs each": "#8a8f98", "default": "#c0271d"}
WIDTH, LEFT, SCALE = 400, 12, 640
"""Pixels; of a share of 1, for `SCALE`. A phone of 390 pixels shows the picture at almost its full size."""

BAR, GROUP, TOP = 46, 128, 66
"""Pixels from bar to bar, from group to group, and above the first group."""


@dataclass(frozen=True)
class Bar:
    """A procedure's share of wrong winners among those that it names, how often it names one, and its mean runs."""

    procedure: str
    wrong: float
    named: float
    num_runs: float


def find_bars(results: Sequence[ResultRow]) -> List[Bar]:
    """Return a bar of each procedure.

    # Raises
        ValueError: if a procedure has no recorded lines of the final rule; the message has its name.
    """
    bars = []
    for procedure in COLOURS:
        lines = [line for line in results if line.procedure == procedure]
        if not lines:
            message = f"{PICTURE.name}: {procedure} has no results whose rule is in final_rule.txt. Measure it again."
            raise ValueError(message)
        selections, named, wrong = add_up(lines, "selections", "named", "wrong")
        bars.append(Bar(procedure, wrong / named, named / selections, float(count_runs(lines).mean())))
    return bars


def text(x: float, y: float, content: str, *, size: int, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{more}>{content}</text>'


def draw_group(title: str, bars: List[Bar], top: float) -> Iterator[str]:
    yield text(LEFT, top, title, size=14, more=' font-weight="bold"')
    for number, bar in enumerate(bars):
        y, length = top + 16 + BAR * number, max(2.0, SCALE * bar.wrong)
        name = "fiesta" if bar.procedure == "default" else "10 runs of each model"
        label = f"{name}: {bar.num_runs:.0f} runs, names a winner in {bar.named:.0%}"
        yield text(LEFT, y + 10, label, size=13, fill=GREY)
        yield f'<rect x="{LEFT}" y="{y + 15}" width="{length:.1f}" height="16" fill="{COLOURS[bar.procedure]}"/>'
        yield text(LEFT + length + 8, y + 29, f"{bar.wrong:.1%} wrong", size=15, more=' font-weight="bold"')


def svg_text() -> str:
    """Return the picture, with a white ground that shows on light and on dark pages."""
    height = TOP + 2 * GROUP - 8
    results = read_results(OPENED)
    near_ties = f"near ties: the best leads by less than {GAP_LIMITS[0]} sd"
    near = [line for line in results if line.gap == GAPS[0]]
    groups = (("all problems", find_bars(results)), (near_ties, find_bars(near)))
    body = [text(LEFT, 26, "How often is the named winner wrong?", size=16, more=' font-weight="bold"')]
    body.append(text(LEFT, 45, SETS[OPENED].title, size=13, fill=GREY))
    for number, (title, bars) in enumerate(groups):
        body += draw_group(title, bars, TOP + 12 + GROUP * number)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" fill="none">'
    )
    return "\n".join((head, f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>', *body, "</svg>", ""))


def write_bars() -> None:
    PICTURE.write_text(svg_text(), encoding="utf-8")
