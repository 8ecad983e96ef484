from pathlib import Path
from typing import Callable

import pytest

from tests.searches import files


@pytest.fixture
def write_files(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a synthetic table under a name."""
    return lambda name: files.write_files(tmp_path / name)
