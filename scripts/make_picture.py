"""Draws the picture of the README from a selection: P(best) over its trainings, as in the selection's report.

python scripts/make_picture.py runs/restaurants
"""

import argparse
import tempfile
from pathlib import Path

from PIL import Image

from fiesta_allennlp import report

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "prob_best.png"
NUM_COLOURS = 64
"""Enough for lines and letters, in a third of the bytes."""


def make_picture(selection: Path, picture: Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        report(selection, output=scratch)
        with Image.open(Path(scratch) / "figures" / "path.png") as figure:
            figure.convert("RGB").quantize(NUM_COLOURS).save(picture, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("selection", type=Path, help="the directory of a selection")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the PNG file (default: the README's picture)")
    args = parser.parse_args()
    make_picture(args.selection, args.output)


if __name__ == "__main__":
    main()
