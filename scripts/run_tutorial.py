"""Runs the code of `docs/tutorial.ipynb` and writes what it prints into the notebook.

    python scripts/run_tutorial.py

It needs no Jupyter. All cells share one namespace, as in a notebook. A value in the last line of a cell is shown.
"""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any, Dict, List

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"

Cell = Dict[str, Any]


def outputs(cells: List[Cell]) -> List[List[Cell]]:
    """What each code cell prints and shows, in the form of a notebook; an empty list for text."""
    names: Dict[str, Any] = {"__name__": "tutorial"}
    return [run("".join(cell["source"]), names) if cell["cell_type"] == "code" else [] for cell in cells]


def run(source: str, names: Dict[str, Any]) -> List[Cell]:
    """What one cell prints, then the value of its last line if it has one."""
    tree = ast.parse(source)
    end = tree.body[-1] if tree.body else None
    last = end if isinstance(end, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: List[Cell] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        text = {"text/plain": str(value).splitlines(keepends=True)}
        found.append({"data": text, "metadata": {}, "output_type": "execute_result", "execution_count": None})
    return found


def main() -> None:
    notebook = json.loads(TUTORIAL.read_text(encoding="utf-8"))
    for cell, cell_outputs in zip(notebook["cells"], outputs(notebook["cells"]), strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"] = cell_outputs
    TUTORIAL.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
