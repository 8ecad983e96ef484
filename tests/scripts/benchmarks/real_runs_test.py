import json
from importlib import import_module
from pathlib import Path

PAGE = "before\n<!-- compared: one, one -->\nold\n<!-- end -->\n"
PAGE += "<!-- compared: one, later -->\nold\n<!-- end -->\nafter\n"


def test_what_a_selection_found_is_kept_and_written_beside_the_released_scores(tmp_path: Path) -> None:
    runs, run, kept = import_module("real_runs"), tmp_path / "one", tmp_path / "kept"
    run.mkdir()
    lines = [
        "candidate,replicate,status,score,split_seed,metric:x",
        *(f"{n},{k},finished,{s},{k},7" for n, k, s in SCORES),
        "a,2,failed,,2,",
    ]
    (run / "evaluations.csv").write_text("\n".join(lines) + "\n")
    runs.keep(run, kept)
    released = tmp_path / "released.json"
    released.write_text(json.dumps({"a": [0.4] * 5 + [0.6] * 5, "b": [0.3] * 5 + [0.5] * 5}))
    page = runs.update_page(PAGE, kept, released)
    # b: 0.75 (error 0.0289 of 4 runs) and 0.4 (error 0.1 of two splits): (0.75 - 0.4) / 0.1041 = 3.4
    assert "| `b` | 4 | 0.750 | 0.058 | 0.400 | 0.105 | +3.4 | 1 / 2 |" in page
    assert "<!-- compared: one, later -->\nold\n<!-- end -->" in page, "a selection that is not kept yet"
    assert "metric" not in (kept / "one" / "scores.csv").read_text() and runs.update_page(page, kept, released) == page


SCORES = (("a", 0, 0.45), ("a", 1, 0.56), ("b", 0, 0.7), ("b", 1, 0.8))
