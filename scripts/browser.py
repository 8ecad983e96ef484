"""Runs Chromium without a window, for the scripts that photograph pages."""

import subprocess
import tempfile
from typing import List


def run_browser(browser: str, options: List[str]) -> None:
    with tempfile.TemporaryDirectory() as profile:
        quiet = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        subprocess.run([browser, *quiet, *options], check=True, capture_output=True, timeout=300)
