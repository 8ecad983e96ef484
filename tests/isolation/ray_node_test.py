import os
import subprocess
import sys
from pathlib import Path

import pytest

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.isolation.ray_node import NodeWork, evaluate_on_node, scratch_directory
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.records import Request
from tests.conftest import REPOSITORY

REQUEST = Request("a", 0, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def test_a_node_that_lacks_a_file_says_what_to_do(tmp_path: Path) -> None:
    lacking = str(tmp_path / "train.txt")
    work = NodeWork(b"", REQUEST, "/", WorkerSettings(), num_gpus=0, time_limit=None, needed=(lacking,), sent={})
    with pytest.raises(DataError, match=f"does not have {lacking}. .* --ship-data"):
        evaluate_on_node(work)


def test_neither_allennlp_nor_torch_is_imported() -> None:
    code = "import sys, fiesta_allennlp.isolation.ray_node; print({'allennlp', 'torch'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], env=ENVIRONMENT, text=True) == "set()\n"


def test_a_scratch_directory_is_deleted_at_the_end_or_after_a_kill_by_the_next_one(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from fiesta_allennlp.isolation.ray_node import scratch_directory\n"
        "with scratch_directory(Path(sys.argv[1])) as scratch: (scratch / 'big').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=ENVIRONMENT, check=False)
    (left,) = tmp_path.glob("*/big")
    with scratch_directory(tmp_path) as first, scratch_directory(tmp_path) as second:
        assert not left.parent.exists()
        assert first.is_dir() and second.is_dir() and first != second
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.lock"]
