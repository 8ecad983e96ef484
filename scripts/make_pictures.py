"""Makes the pictures of the README and the site from selections, and the example of a report.

python scripts/make_pictures.py prob-best runs/restaurants      # docs/pictures/prob_best.png
python scripts/make_pictures.py report runs/wikigold            # docs/live/wikigold.html, docs/pictures/report.png
python scripts/make_pictures.py terminal 90 fiesta select ...   # docs/pictures/terminal.svg: the screen after 90 s

`report` needs Chromium, and `terminal` needs pyte.
"""

import argparse
import io
import os
import pty
import re
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import List

from browser import run_browser
from PIL import Image
from rich.console import Console
from rich.text import Text

from fiesta_allennlp import report

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = DOCS / "pictures"
LIVE = DOCS / "live" / "wikigold.html"
NUM_COLOURS = 64
"""Enough for lines and letters, in a third of the bytes."""

COLUMNS, LINES = 84, 24


def save(picture: Path, name: str, *, height: int = sys.maxsize) -> None:
    """Save the upper part of a picture with few colours."""
    with Image.open(picture) as image:
        part = image.convert("RGB").crop((0, 0, image.width, min(height, image.height)))
        part.quantize(NUM_COLOURS).save(PICTURES / name, optimize=True)


def prob_best(selection: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        report(selection, output=scratch)
        save(Path(scratch) / "figures" / "path.png", "prob_best.png")


def report_page(selection: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        report(selection, output=scratch)
        LIVE.parent.mkdir(exist_ok=True)
        shutil.copy(Path(scratch) / "report.html", LIVE)
        picture = Path(scratch) / "page.png"
        run_browser("chromium", ["--window-size=1100,1400", f"--screenshot={picture}", LIVE.as_uri()])
        save(picture, "report.png")


def terminal(seconds: float, command: List[str]) -> None:
    """Run a command on a terminal of its own, draw the screen after some seconds, and interrupt the command."""
    import pyte

    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    child, output = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": str(LINES)})
    end = time.monotonic() + seconds
    while time.monotonic() < end and select.select([output], [], [], end - time.monotonic())[0]:
        stream.feed(os.read(output, 65536))
    os.kill(child, signal.SIGINT)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text("\n".join(screen.display).rstrip() + "\n"))
    svg = console.export_svg(title=" ".join(command[:2]))
    without_fonts = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # they would be fetched from a network
    (PICTURES / "terminal.svg").write_text(without_fonts, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", choices=("prob-best", "report", "terminal"))
    parser.add_argument(
        "given", nargs=argparse.REMAINDER, help="the directory of a selection; or seconds and a command"
    )
    args = parser.parse_args()
    if args.picture == "terminal":
        terminal(float(args.given[0]), args.given[1:])
    else:
        {"prob-best": prob_best, "report": report_page}[args.picture](args.given[0])


if __name__ == "__main__":
    main()
