import csv
from pathlib import Path
from typing import Any


def test_the_command_answers_a_loop_until_it_has_ended(tmp_path: Path, in_process: Any) -> None:
    path = tmp_path / "s.csv"
    path.write_text("candidate,split,seed,score\n")
    call = in_process("next")
    for count in range(60):
        told = call.done(path, "--candidates", "a,b", "--workers", "2", "--format", "csv")
        if told.startswith("Stop"):  # on the standard error
            break
        with path.open("a") as table:
            for name, split, seed in csv.reader(told.splitlines()):
                table.write(
                    f"{name},{split},{seed},{0.5 + 0.1 * (name == 'b') + 0.001 * ((count * 7 + int(split)) % 5)}\n"
                )
    told = call.done(path)
    assert "b is the best (P(best)" in told and "Stop: it is decided" in told
    told = call.done(path, "--format", "json")
    assert '"stopped_by": "confidence"' in told and '"next": []' in told
