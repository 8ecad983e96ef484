import json
from importlib import import_module
from pathlib import Path

PAGE = "before\n<!-- compared: one, one -->\nold\n<!-- end -->\nafter\n"
SCORES = (("a", 0, 0.45), ("a", 1, 0.56), ("b", 0, 0.7), ("b", 1, 0.8))


def test_what_a_selection_found_is_written_beside_the_released_scores(tmp_path: Path) -> None:
    runs = import_module("real_runs")
    (tmp_path / "one").mkdir()
    lines = ["candidate,replicate,status,score", *(f"{n},{k},finished,{s}" for n, k, s in SCORES), "a,2,failed,"]
    (tmp_path / "one" / "scores.csv").write_text("\n".join(lines) + "\n")
    released = tmp_path / "released.json"
    released.write_text(json.dumps({"a": [0.4] * 5 + [0.6] * 5, "b": [0.3] * 5 + [0.5] * 5}))
    page = runs.update_page(PAGE, tmp_path, released)
    # b: 0.75 (error 0.0289 of 4 runs) and 0.4 (error 0.1 of two splits): (0.75 - 0.4) / 0.1041 = 3.4
    assert "| `b` | 4 | 0.750 | 0.058 | 0.400 | 0.105 | +3.4 | 1 / 2 |" in page
    assert page.endswith("<!-- end -->\nafter\n") and runs.update_page(page, tmp_path, released) == page
