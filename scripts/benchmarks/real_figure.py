"""The picture of `real_problems.py`: what each procedure names, how much of it is wrong, and what it costs."""

import math
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Iterator, List, Sequence, Tuple

from common import ROOT, final_rule
from real_results import OPENED, SETS, TUNED, read_results
from real_tables import count_runs, group_rows, sum_of

PICTURE = ROOT / "docs" / "pictures" / "procedures.svg"
WIDTH, PANEL_HEIGHT, LEFT, RIGHT, TOP = 400, 250, 44, 386, 52
"""Pixels. A phone of 390 pixels shows it at almost its full size."""

STEP = PANEL_HEIGHT + 106
"""From the top of one panel to that of the next."""

RADIUS = 11
NUM_PUSHES = 200
LEAST_NAMED = 0.5
X_TICKS, Y_TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
INK, GREY, LINE = "#222", "#666", "#ddd"


@dataclass(frozen=True)
class Kind:
    """Procedures of one kind, which a line joins, and how the legend names them."""

    label: str
    colour: str
    procedures: Tuple[str, ...]
    is_filled: bool = True


KINDS = (
    Kind("the default", "#c0271d", ("default",)),
    Kind("loop over all models", "#6b3fa0", ("plain loop",)),
    Kind("loop that rests losers", "#6b3fa0", ("resting loop",), is_filled=False),
    Kind(
        "t-tests at 5, 10, 20%", "#1f6fb4", tuple(f"t-tests of 12 runs each at {p}" for p in ("0.05", "0.10", "0.20"))
    ),
    Kind("races: 5% in all, 2% a look", "#b35c00", ("race at 0.05 in all", "race at 0.02 a look")),
    Kind("halving, test at 5%", "#2c7a3f", ("halving",)),
    Kind("the paper's procedure", "#8a5a44", ("the paper's procedure",), is_filled=False),
    Kind("5, 10, 20 runs each", "#555", tuple(f"{k} runs each" for k in (5, 10, 20))),
)
"""`glr` names less than the axis shows, and a margin has errors of another kind."""


@dataclass(frozen=True)
class Mark:
    """A procedure in a panel: where it belongs, where its mark is, and its mean runs."""

    kind: Kind
    x: float
    y: float
    mark_x: float
    mark_y: float
    num_runs: float


def x_of(share: float) -> float:
    """Place a share of wrong winners, on a scale of square roots."""
    return LEFT + (RIGHT - RADIUS - LEFT) * math.sqrt(share / X_TICKS[-1])


def y_of(share: float) -> float:
    return PANEL_HEIGHT * (1 - share) / (1 - LEAST_NAMED)


def find_marks(set_name: str) -> List[Mark]:
    """Return the marks of a set, none above another one."""
    groups = group_rows(read_results(set_name), final_rule(), "procedures")
    marks: List[Mark] = []
    for kind in KINDS:
        for name in kind.procedures:
            lines = groups.get((name,), [])
            if named := sum_of(lines, "named"):
                x, y = x_of(sum_of(lines, "wrong") / named), y_of(named / sum_of(lines, "selections"))
                marks.append(Mark(kind, x, y, x, y, float(count_runs(lines).mean())))
    return push_apart(marks)


def push_apart(marks: Sequence[Mark]) -> List[Mark]:
    """Move marks that overlap away from each other, within the panel."""
    placed = list(marks)
    for _ in range(NUM_PUSHES):
        for i, j in combinations(range(len(placed)), 2):
            first, second = placed[i], placed[j]
            dx, dy = first.mark_x - second.mark_x, first.mark_y - second.mark_y
            distance = math.hypot(dx, dy)
            if distance < 2 * RADIUS:
                dx, dy = (dx / distance, dy / distance) if distance else (0.0, 1.0)
                push = (2 * RADIUS - distance) / 2 + 0.2
                placed[i], placed[j] = moved(first, push * dx, push * dy), moved(second, -push * dx, -push * dy)
    return placed


def moved(mark: Mark, dx: float, dy: float) -> Mark:
    return replace(mark, mark_x=min(mark.mark_x + dx, RIGHT), mark_y=min(mark.mark_y + dy, PANEL_HEIGHT - RADIUS))


def text(x: float, y: float, content: str, *, size: int = 12, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{more}>{content}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def disc(x: float, y: float, kind: Kind, content: str = "", radius: float = RADIUS) -> Iterator[str]:
    fill, ink = (kind.colour, "#fff") if kind.is_filled else ("#fff", kind.colour)
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius - 1}" fill="{fill}" stroke="{kind.colour}" stroke-width="2"/>'
    yield text(
        x,
        y + 3.7,
        content,
        size=11 if len(content) < 3 else 9,
        fill=ink,
        more=' text-anchor="middle" font-weight="bold"',
    )


def panel(set_name: str, top: float) -> Iterator[str]:
    """Draw the axes and marks of a set."""
    middle = ' text-anchor="middle"'
    yield text(12, top - 30, SETS[set_name].title, size=13, more=' font-weight="bold"')
    yield text(12, top - 12, "selections that name a winner", fill=GREY)
    yield f'<g transform="translate(0 {top})">'
    for share in Y_TICKS:
        yield line(LEFT, y_of(share), RIGHT, y_of(share), LINE)
        yield text(LEFT - 5, y_of(share) + 4, f"{share:.0%}", fill=GREY, more=' text-anchor="end"')
    for share in X_TICKS:
        yield line(x_of(share), 0, x_of(share), PANEL_HEIGHT, LINE)
        yield text(x_of(share), PANEL_HEIGHT + 16, f"{share:.0%}", fill=GREY, more=middle)
    yield text((LEFT + RIGHT) / 2, PANEL_HEIGHT + 34, "wrong among the named winners", fill=GREY, more=middle)
    marks = find_marks(set_name)
    for first, second in pairwise(marks):
        if first.kind is second.kind:
            yield line(first.mark_x, first.mark_y, second.mark_x, second.mark_y, first.kind.colour, 1.5)
    for mark in marks:
        yield line(mark.x, mark.y, mark.mark_x, mark.mark_y, mark.kind.colour)
        yield f'<circle cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="2" fill="{mark.kind.colour}"/>'
    for mark in marks:
        yield from disc(mark.mark_x, mark.mark_y, mark.kind, f"{mark.num_runs:.0f}")
    yield "</g>"


def legend(top: float) -> Iterator[str]:
    yield text(12, top, "In each mark: mean runs. Better is up and to the left.", fill=GREY)
    for number, kind in enumerate(KINDS):
        x, y = 20 + 190 * (number % 2), top + 22 + 21 * (number // 2)
        yield from disc(x, y - 4, kind, radius=7)
        yield text(x + 12, y, kind.label)


def svg_text() -> str:
    """Return the picture, with a white ground that shows on light and on dark pages."""
    height = TOP + 2 * STEP + 22 + 21 * ((len(KINDS) + 1) // 2) - 40
    body = [*panel(OPENED, TOP), *panel(TUNED, TOP + STEP), *legend(TOP + 2 * STEP - 40)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" fill="none">'
    )
    return "\n".join((head, f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>', *body, "</svg>", ""))


def write_figure() -> None:
    PICTURE.write_text(svg_text(), encoding="utf-8")
