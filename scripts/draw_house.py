"""The rooms of the package and the imports between them, as a picture for CONTRIBUTING.md.

    python scripts/draw_house.py docs/pictures/house.svg

A room is a folder of the package, and its `__init__.py` says what it holds. It stands above all rooms that it imports.
An arrow that follows from others is left out.
"""

import argparse
import ast
import textwrap
from pathlib import Path
from typing import Dict, List, Set, Tuple
from xml.sax.saxutils import escape

PACKAGE = Path(__file__).parent.parent / "fiesta_allennlp"
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 230, 64, 26, 40, 14

Arrow = Tuple[str, str]


def rooms() -> Dict[str, List[Path]]:
    """Return the files of each room, by its name."""
    folders = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
    return {folder.name: sorted(folder.rglob("*.py")) for folder in folders}


def imports_between(files_by_room: Dict[str, List[Path]]) -> Set[Arrow]:
    """Return which room imports which."""
    modules = {
        (room, node.module or "")
        for room, files in files_by_room.items()
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    }
    arrows = {(room, module.split(".")[1]) for room, module in modules if module.startswith("fiesta_allennlp.")}
    return {(room, target) for room, target in arrows if target != room and target in files_by_room}


def reachable(room: str, arrows: Set[Arrow]) -> Set[str]:
    targets = {target for source, target in arrows if source == room}
    return targets.union(*(reachable(target, arrows) for target in targets))


def levels(names: List[str], arrows: Set[Arrow]) -> List[List[str]]:
    """Return the rooms from top to bottom: each one below all that import it."""

    def height(room: str) -> int:
        return 1 + max((height(target) for source, target in arrows if source == room), default=-1)

    heights = {name: height(name) for name in names}
    return [[name for name in names if heights[name] == level] for level in sorted({*heights.values()}, reverse=True)]


def description(room: str) -> List[str]:
    """Return the sentence of a room, in lines that fit into its box."""
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    return textwrap.wrap((ast.get_docstring(tree) or "").split("\n\n")[0], 34)


def draw(files_by_room: Dict[str, List[Path]], arrows: Set[Arrow]) -> str:
    """Return the picture as SVG."""
    rows = levels(list(files_by_room), arrows)
    width = max(len(row) for row in rows) * (BOX_WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    height = len(rows) * (BOX_HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    corners: Dict[str, Tuple[float, float]] = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (BOX_WIDTH + GAP_X) + GAP_X) / 2
        for column, room in enumerate(row):
            corners[room] = left + column * (BOX_WIDTH + GAP_X), MARGIN + number * (BOX_HEIGHT + GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        '<marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#777"/></marker>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for source, target in sorted(arrows):
        others = {other for start, other in arrows if start == source and other != target}
        if any(target in reachable(other, arrows) for other in others):
            continue
        (x1, y1), (x2, y2) = corners[source], corners[target]
        x1, y1, x2 = x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH / 2
        is_long = y2 - y1 > GAP_Y  # round the rooms between them
        bend = f" Q{(x1 + x2) / 2 - is_long * BOX_WIDTH * 1.4:.0f} {(y1 + y2) / 2:.0f}" if x1 == x2 else ""
        line = f'd="M{x1:.0f} {y1:.0f}{bend} {x2:.0f} {y2:.0f}" fill="none"'
        parts.append(f'<path {line} stroke="#777" marker-end="url(#tip)"/>')
    for room, (x, y) in corners.items():
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="#eef4fb" '
            'stroke="#38618c"/>'
            f'<text x="{x + 12:.0f}" y="{y + 22:.0f}" font-size="15" font-weight="bold">{room}</text>'
        )
        for number, line in enumerate(description(room)):
            parts.append(f'<text x="{x + 12:.0f}" y="{y + 40 + 15 * number:.0f}" font-size="12">{escape(line)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def house() -> str:
    files_by_room = rooms()
    return draw(files_by_room, imports_between(files_by_room))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.parse_args().picture.write_text(house(), encoding="utf-8")
