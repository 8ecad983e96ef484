"""Imports go down only. A module may import what its layer is allowed to, and nothing else of this package."""

import ast
from pathlib import Path
from typing import Iterator, Tuple

import pytest

PACKAGE = Path(__file__).parent.parent / "fiesta_allennlp"

BASE = {"records", "counts", "errors", "version", "defaults", "run_directory"}
CHOOSING = BASE | {"seeding", "probability"}
LANGUAGE = BASE | {"splitters", "dataset_readers", "models", "predictors"}
ISOLATION = {"fork_server", "node_server", "on_node"}
DOING = BASE | ISOLATION | {"splitters", "dataset_readers", "evaluators", "executors"}

ALLOWED = {
    "records": {"counts"},
    "counts": set(),
    "errors": set(),
    "version": set(),
    "defaults": set(),
    "environment": BASE,
    "run_directory": set(),
    "seeding": BASE,
    "probability": BASE,
    "splitters": BASE,
    "beliefs": CHOOSING,
    "strategies": CHOOSING | {"beliefs"},
    "functional": CHOOSING | {"beliefs", "strategies"},
    "dataset_readers": LANGUAGE,
    "models": LANGUAGE,
    "predictors": LANGUAGE,
    "fork_server": BASE,
    "node_server": BASE | {"fork_server"},
    "on_node": BASE | {"node_server", "executors"},
    "evaluators": DOING - ISOLATION - {"executors"} | {"plain_words", "plugin", "predictors", "store_file"},
    "executors": DOING | {"plugin"},
    "store_file": BASE,
    "run_state": BASE,
    "store_reader": BASE | {"store_file", "run_state"},
    "run_store": BASE | {"store_file", "run_state", "store_reader"},
    "working_time": BASE | {"run_store"},
    "retries": BASE,
    "opening": BASE | {"run_store"},
    "roster": DOING | {"run_state", "run_store"},
    "choice": BASE,
    "settings": BASE | {"choice"},
    "plain_words": BASE,
    "library": BASE | {"run", "choice", "evaluators", "replaying", "replay_settings", "reports", "plugin"},
    "strategy_building": CHOOSING | {"choice", "strategies", "plain_words"},
    "executor_building": BASE | {"choice", "settings", "executors", "plain_words"},
    "replay_settings": BASE | {"choice"},
    "replaying": DOING | CHOOSING | {"replay_settings", "strategy_building", "strategies"},
    "reports": BASE | {"run_store", "replaying", "probability"},
    "selection": CHOOSING | {"strategies", "evaluators", "executors", "run_store", "working_time", "retries"},
    "gathering": CHOOSING
    | {"evaluators", "beliefs", "strategies", "choice", "settings", "strategy_building", "plain_words", "reports"}
    | {"environment", "store_reader", "working_time", "document_choice", "document_settings"},
    "reporting": BASE | {"gathering", "reports"},
    "preparing": DOING | {"settings", "run_store", "roster", "plain_words", "environment"},
    "run": DOING
    | CHOOSING
    | {"preparing", "settings", "strategies", "strategy_building", "executor_building", "selection", "run_store"}
    | {"roster", "opening", "reports", "kept_archives", "environment"},
    "kept_archives": BASE,
    "document_settings": BASE | {"choice"},
    "document_systems": BASE | {"evaluators", "plain_words"},
    "document_limit": CHOOSING | {"strategies"},
    "document_choice": CHOOSING | {"document_settings", "document_limit", "evaluators", "strategy_building", "reports"},
    "document_preparing": DOING | {"document_settings", "document_systems", "document_choice"},
    "document_run": DOING
    | CHOOSING
    | {"document_choice", "document_preparing", "document_settings", "document_systems", "choice", "settings"}
    | {"environment"}
    | {"selection", "run_store", "opening", "reports"},
    "commands": BASE
    | {"run", "settings", "replaying", "replay_settings", "reports", "reporting"}
    | {"document_run", "document_preparing", "document_settings"},
}
"""By module or sub-package; what is at the top (`plugin`, `__main__`, `__init__`) may import anything."""

NO_TORCH = (
    "probability",
    "records",
    "counts",
    "seeding",
    "splitters",
    "errors",
    "run_directory",
    "store_file",
    "run_store",
    "store_reader",
    "environment",
    "run_state",
    "working_time",
    "retries",
    "fork_server",
    "node_server",
    "on_node",
)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


TOP = ("plugin", "__main__", "__init__", "ignore_interrupts")
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if unit_of(path) not in TOP]


def violations(path: Path, source_unit: str) -> "list[Tuple[str, str]]":
    bad = []
    for name in imports_of(path):
        parts = name.split(".")
        inside = parts[0] == "fiesta_allennlp" and len(parts) > 1
        if inside and parts[1] not in ALLOWED[source_unit] | {source_unit}:
            bad.append((str(path), name))
        if source_unit in NO_TORCH and parts[0] in ("torch", "allennlp"):
            bad.append((str(path), name))
    return bad


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    assert violations(path, unit_of(path)) == []


def test_the_two_wings_do_not_know_each_other() -> None:
    assert not ALLOWED["beliefs"] & {"dataset_readers", "models", "evaluators"}
    assert not ALLOWED["strategies"] & {"dataset_readers", "models", "evaluators"}
    assert not ALLOWED["models"] & {"beliefs", "strategies", "probability"}


def test_an_import_upwards_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("import torch\nfrom fiesta_allennlp.commands import fiesta_select\n")

    assert [name for _, name in violations(module, "splitters")] == [
        "torch",
        "fiesta_allennlp.commands",
        "fiesta_allennlp.commands.fiesta_select",
    ]
