"""Imports go down only: what each module or folder of the package may import."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

PACKAGE = Path(__file__).parent.parent / "fiesta_allennlp"

GROUND = {"core", "version"}

ALLOWED: Dict[str, Set[str]] = {
    "core": {"version"},  # records, files, options: what every room needs
    "models": GROUND,  # trains as any AllenNLP package does, and knows nothing of selections
    "choosing": GROUND,  # scores in, decisions out
    "running": GROUND,  # makes a request somewhere, whatever it is
    "selecting": GROUND | {"choosing", "running"},  # the loop asks the one, and gives work to the other
    "candidates": GROUND | {"choosing", "running", "selecting"},  # what a run is: a config or a program, and its data
    "documents": GROUND | {"choosing", "running", "selecting"},  # the same for a trained system
    "tables": GROUND | {"choosing", "selecting"},  # runs that exist already, and simulated ones: nothing is run
    "confirming": GROUND | {"choosing", "selecting", "candidates"},  # fresh runs of candidates
    "reports": GROUND | {"choosing", "running", "selecting", "candidates", "documents", "tables", "confirming"},
    "commands": GROUND
    | {"choosing", "running", "selecting", "candidates", "documents", "tables", "confirming", "reports", "plugin"},
    "functional": GROUND | {"choosing"},  # the paper's calls for Python functions: choosing without a store
}
"""What each room may import. `plugin`, `__main__` and `__init__` may import anything, and nothing but `plugin` imports
`models`: programs that run in other processes get its name as a string."""

WITH_TORCH = ("models", "candidates/allennlp")
"""All that imports torch or AllenNLP when it is imported itself, `plugin` aside."""

TOP = ("plugin", "__main__", "__init__", "version")


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_import(tree: ast.Module) -> Iterator[str]:
    """What is imported when the module is: not what its functions import when they are called."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imports_of(node)


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if unit_of(path) not in TOP]


def violations(path: Path, unit: str) -> "List[Tuple[str, str]]":
    bad = []
    for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
        package, _, rest = name.partition(".")
        if package == "fiesta_allennlp" and rest and rest.split(".")[0] not in ALLOWED[unit] | {unit}:
            bad.append((str(path), name))
    return bad


def test_imports_go_down_only() -> None:
    assert [found for path in MODULES for found in violations(path, unit_of(path))] == []


def test_a_room_uses_only_what_the_init_file_of_another_names() -> None:
    own_names = {path: f"fiesta_allennlp.{unit_of(path)}." for path in PACKAGE.rglob("*.py")}
    imported = {
        (path, name)
        for path, own in own_names.items()
        for name in imports_of(ast.parse(path.read_text(encoding="utf-8")))
        if name.startswith("fiesta_allennlp.") and not f"{name}.".startswith(own)
    }
    assert [(str(path), name) for path, name in sorted(imported) if not is_given(name.split(".")[1:])] == []


def is_given(parts: List[str]) -> bool:
    """Return whether a name below the package, or the module that has it, is one that the `__init__.py` above names. A
    room without `__all__` gives all of its modules."""
    folder = PACKAGE
    while parts and (folder / parts[0]).is_dir():
        folder, parts = folder / parts[0], parts[1:]
    if not parts or folder == PACKAGE:
        return True
    body = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body
    names = {alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    lists = [ast.literal_eval(node.value) for node in body if ast.unparse(node).startswith("__all__ = ")]  # type: ignore
    return not lists or parts[0] in names.union(*lists)


def test_a_folder_has_at_most_a_dozen_modules_and_each_a_name_of_its_own() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    sizes = Counter(path.parent for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert names.most_common(1)[0][1] == 1
    assert sizes.most_common(1)[0][1] <= 12


def test_no_files_import_each_other_in_a_circle_even_late() -> None:
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES}
    files = set(names.values())
    graph = {
        names[path]: files.intersection(imports_of(ast.parse(path.read_text(encoding="utf-8")))) - {names[path]}
        for path in MODULES
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(files)  # raises a CycleError


def test_nothing_else_loads_torch_or_allennlp() -> None:
    loading = {path for path in MODULES if is_heavy(path)}
    allowed = {path for place in WITH_TORCH for path in [*(PACKAGE / place).rglob("*.py"), PACKAGE / f"{place}.py"]}
    assert loading - allowed == set()
    assert all(any(path in loading for path in [*(PACKAGE / p).rglob("*.py"), PACKAGE / f"{p}.py"]) for p in WITH_TORCH)


def is_heavy(path: Path) -> bool:
    names = at_import(ast.parse(path.read_text(encoding="utf-8")))
    heavy = ("torch", "allennlp", "fiesta_allennlp.plugin", "fiesta_allennlp.candidates.allennlp")
    return any(f"{name}.".startswith(f"{one}.") for name in names for one in heavy)
