"""Makes the pages and figures of invented reports, large, small and awkward, to look at. Where Chromium is found it
photographs the pages: at 1280 and at 390 pixels, and as printed.

    PYTHONPATH=. python scripts/look_at_report.py runs/look --only two ugly
"""

import argparse
import shutil
import time
from pathlib import Path
from typing import List, Optional

from browser import run_browser

from fiesta_allennlp.reports.figures.drawing import draw_all
from fiesta_allennlp.reports.pages import render_html
from tests.reports.made_up import all_made_up

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def photograph(page: Path, browser: str) -> None:
    """Pictures beside the page. A browser's window is not narrower than 500 pixels, so the narrow one is a frame."""
    frame = page.with_suffix(".frame.html")
    frame.write_text(
        f'<body style="margin: 0"><iframe src="{page.name}" style="border: 0; width: 390px; height: 16000px"></iframe>',
        encoding="utf-8",
    )
    for source, options in (
        (page, ["--window-size=1280,12000", f"--screenshot={page.with_suffix('.1280.png')}"]),
        (frame, ["--window-size=500,16000", f"--screenshot={page.with_suffix('.390.png')}"]),
        (page, ["--no-pdf-header-footer", f"--print-to-pdf={page.with_suffix('.print.pdf')}"]),
    ):
        run_browser(browser, [*options, source.resolve().as_uri()])
    frame.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", nargs="+", choices=all_made_up(), default=list(all_made_up()))
    args = parser.parse_args()
    paths: List[Optional[str]] = [shutil.which(name) for name in BROWSERS]
    browser = next(filter(None, paths), None)
    print(f"Browser: {browser or 'none found, no pictures of the pages'}")
    for name in args.only:
        report = all_made_up()[name]
        begin, cpu = time.perf_counter(), time.process_time()
        pictures = draw_all(report, args.output / name)
        page = args.output / f"{name}.html"
        page.write_text(render_html(report, pictures), encoding="utf-8")
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        print(f"{name}: {page.stat().st_size / 1e6:.2f} MB, {seconds:.1f} s, processor time {cpu:.1f} s")
        if browser is not None:
            photograph(page, browser)


if __name__ == "__main__":
    main()
