"""What a start imports, and what it says where AllenNLP is missing."""

import os
import subprocess
import sys

from fiesta_allennlp.version import __version__
from tests.conftest import REPOSITORY

HEAVY = ("torch", "spacy", "transformers", "allennlp", "scipy", "matplotlib")

START = """
import sys
from fiesta_allennlp.__main__ import main
every = ("--version", "--help")
every += ("plan --help", "plan", "select --help", "select --metrik x", "select a.jsonnet")
for typed in every:
    sys.argv = ["fiesta", *typed.split()]
    try:
        main()
    except SystemExit as stopped:
        print("status", stopped.code)
print("loaded", sorted(sys.modules))
"""


def test_help_and_usage_errors_import_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    *_, loaded = done.stdout.splitlines()
    statuses = [line for line in done.stdout.splitlines() if line.startswith("status")]
    assert statuses == [f"status {code}" for code in (0, 0, 0, 2, 0, 2, 2)]
    assert done.stdout.startswith(f"fiesta-allennlp {__version__}\n")
    assert "-s is missing" in done.stderr
    assert "error: unrecognized arguments: --metrik. Did you mean '--metric'? See " in done.stderr
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []


def test_a_missing_allennlp_is_told_with_the_line_to_type() -> None:
    code = (
        "import sys, importlib.machinery as m\n"
        "class Hidden(m.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, *rest):\n"
        "        return None if name == 'allennlp' else super().find_spec(name, *rest)\n"
        "sys.meta_path[:] = [Hidden if f is m.PathFinder else f for f in sys.meta_path if 'ditable' not in repr(f)]\n"
        "import fiesta_allennlp.strategies\n"
        "try:\n    import fiesta_allennlp.plugin\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
        "from fiesta_allennlp.__main__ import main\n"
        "sys.argv = ['fiesta', 'select', 'tdlstm.jsonnet', 'lstm.jsonnet', '--dry-run']\nmain()\n"
    )
    configs = REPOSITORY / "training_configs" / "sample"
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=configs,
        env={**os.environ, "PYTHONPATH": path},
    )
    told = "AllenNLP is not installed. In a clone of fiesta_allennlp, type: pip install '.[allennlp]'"
    if sys.version_info >= (3, 11):
        told += " && pip install --no-deps allennlp==2.10.1"
    assert done.returncode == 2
    assert done.stdout == f"{told}\n"
    assert done.stderr == f"error: {told}\n"
