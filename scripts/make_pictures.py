"""Makes the pictures of the README and the site from selections, and the example of a report.

python scripts/make_pictures.py report runs/digits              # docs/live/example-report.html, pictures/report.png
python scripts/make_pictures.py recording 20 fiesta select ...  # docs/pictures/recording.svg: a terminal, in 20 s

`report` needs Chromium, and `recording` needs pyte. The script of commit d7aff15e drew docs/pictures/splits.svg.
"""

import argparse
import contextlib
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Iterator, List, Tuple

from PIL import Image
from rich.console import Console
from rich.text import Text

from fiesta_allennlp import report

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = DOCS / "pictures"
LIVE = DOCS / "live" / "example-report.html"
NUM_COLOURS = 64
"""Enough for lines and letters, in a third of the bytes."""

COLUMNS, LINES = 84, 24
LINE_HEIGHT = 24.4
"""Of rich, in pixels."""
FRAMES = 40
"""The most screens of a recording."""

FIRST_SHARE = 0.12
"""The share of the time for which a recording begins with its last screen."""


def report_page(selection: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        report(selection, output=scratch)
        LIVE.parent.mkdir(exist_ok=True)
        shutil.copy(Path(scratch) / "report.html", LIVE)
        picture = Path(scratch) / "page.png"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,1400"]
        command = ["chromium", *options, f"--user-data-dir={scratch}/profile", f"--screenshot={picture}", LIVE.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        with Image.open(picture) as image:
            image.convert("RGB").quantize(NUM_COLOURS).save(PICTURES / "report.png", optimize=True)


def screens(command: List[str]) -> Iterator[Tuple[float, str]]:
    """Run a command on a terminal of its own. Yield the seconds since its start and the screen after each output."""
    import pyte

    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    child, output = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": str(LINES)})
    start = time.monotonic()
    with contextlib.suppress(OSError):  # the command has ended
        while True:
            stream.feed(os.read(output, 65536))
            yield time.monotonic() - start, "\n".join(screen.display).rstrip()


def draw_terminal(text: str, command: List[str]) -> str:
    """An SVG of a terminal with this text."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(text + "\n"))
    svg = console.export_svg(title=" ".join(command[:2]), unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # they would be fetched from a network


def recording(seconds: float, command: List[str]) -> None:
    """Draw all screens of a command below each other, and show one after the other. The last comes first, stays at the
    end, and is shown where nothing moves."""
    typed = "$ " + shlex.join(command).replace(" '", " \\\n    '").replace("' --", "' \\\n    --") + "\n\n"
    screen_times = list(screens(command))
    frames = [screen_times[0]]
    for when, text in screen_times:
        if when - frames[-1][0] < screen_times[-1][0] / FRAMES:
            frames[-1] = (frames[-1][0], text)
        elif text != frames[-1][1]:
            frames.append((when, text))
    texts = [typed, *(typed + text for _, text in frames)]
    height = 2 + max(text.count("\n") for text in texts)  # an empty line keeps the next screen out of sight
    film = draw_terminal("\n".join(text + "\n" * (height - 1 - text.count("\n")) for text in texts), command)
    picture = draw_terminal("\n" * (height - 2), command)
    matrix = re.compile(r'(?<=<g class="terminal-matrix">).*?(?=</g>)', flags=re.DOTALL)
    picture = matrix.sub(lambda _: matrix.findall(film)[0], picture)
    picture = re.sub(
        r' clip-path="url\(#terminal-line-\d+\)"|<clipPath id="terminal-line.*?</clipPath>\s*',
        "",
        picture,
        flags=re.DOTALL,
    )
    begins = [FIRST_SHARE, *(FIRST_SHARE + 0.65 * when / frames[-1][0] for when, _ in frames)]
    moves = [f"translateY({-number * height * LINE_HEIGHT:.1f}px)" for number in range(len(texts))]
    steps = " ".join(f"{begin:.2%} {{ transform: {move} }}" for begin, move in zip(begins, moves, strict=True))
    style = (
        f"@keyframes film {{ 0% {{ transform: {moves[-1]} }} {steps} 100% {{ transform: {moves[-1]} }} }}\n"
        f".terminal-matrix {{ transform: {moves[-1]}; animation: film {seconds:g}s step-end infinite }}\n"
        "@media (prefers-reduced-motion: reduce) { .terminal-matrix { animation: none } }\n</style>"
    )
    (PICTURES / "recording.svg").write_text(picture.replace("</style>", style), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", choices=("report", "recording"))
    parser.add_argument(
        "subject", nargs=argparse.REMAINDER, help="the directory of a selection; or seconds and a command"
    )
    args = parser.parse_args()
    if args.picture == "recording":
        recording(float(args.subject[0]), args.subject[1:])
    else:
        report_page(args.subject[0])


if __name__ == "__main__":
    main()
