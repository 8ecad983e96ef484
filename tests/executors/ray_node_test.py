import os
import subprocess
import sys
from pathlib import Path

from fiesta_allennlp.executors.ray import scratch_directory
from tests.conftest import REPOSITORY

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def test_a_scratch_directory_is_deleted_at_the_end_or_after_a_kill_by_the_next_one(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from fiesta_allennlp.executors.ray import scratch_directory\n"
        "with scratch_directory(Path(sys.argv[1])) as scratch: (scratch / 'big').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=ENVIRONMENT, check=False)
    (left,) = tmp_path.glob("*/big")
    with scratch_directory(tmp_path) as first, scratch_directory(tmp_path) as second:
        assert not left.parent.exists()
        assert first.is_dir() and second.is_dir() and first != second
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.lock"]
