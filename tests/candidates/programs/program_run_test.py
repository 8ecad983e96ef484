import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import take_snapshot
from fiesta_allennlp.candidates.programs.program_run import ProgramRun, last_lines
from fiesta_allennlp.candidates.programs.repeat import repeat_program
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.errors import DataChangedError, MetricError, ProgramError, ProgramKilledError
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.core.seeding import make_request
from tests.programs import program_config

REQUEST = make_request(99, "a", 0, shared_splits=True)

KEEP = 'cat "$1" > "$5/1"; cat "$2" > "$5/2"; cat "$3" > "$5/3"; echo "{\\"accuracy\\": 0.$4}"'
"""Leaves the sets, and scores the seed."""


def make_run(config: Dict[str, Any], **options: Any) -> ProgramRun:
    return ProgramRun(config, "accuracy", **options)


def ran(reviews: Path, script: str, *, config: Any = (), **options: Any) -> Tuple[Evaluation, Path]:
    """The evaluation of a script, and its directory."""
    directory = reviews / "run" / "evaluations" / "a-0"
    directory.mkdir(parents=True, exist_ok=True)
    return make_run(program_config(reviews, script, **dict(config)), **options).evaluate(REQUEST, directory), directory


def output_of(directory: Path) -> Path:
    """What the program is given as its own directory."""
    return directory / "output"


def test_a_run_gets_its_sets_and_seeds_and_leaves_what_it_wrote(reviews: Path) -> None:
    evaluation, directory = ran(reviews, KEEP)
    assert evaluation.score == evaluation.metrics["accuracy"] == float(f"0.{REQUEST.random_seed}")
    assert sorted(path.name for path in directory.iterdir()) == ["outcome.json", "output"]
    assert sorted(path.name for path in output_of(directory).iterdir()) == ["1", "2", "3"]
    sets = [(output_of(directory) / name).read_text().splitlines() for name in "123"]
    assert [len(lines) for lines in sets] == [40, 12, 20]
    official = [(reviews / f"{part}.jsonl").read_text().splitlines() for part in ("train", "validation", "test")]
    assert sorted(itertools.chain(*sets)) == sorted(itertools.chain(*official))
    assert sorted(sets[2]) != sorted(official[2])
    ran(reviews, KEEP, division=Division(is_official=True))
    assert [(output_of(directory) / name).read_text().splitlines() for name in "123"] == official


def test_metrics_may_be_in_a_file_and_the_model_goes_unless_it_is_kept(reviews: Path) -> None:
    script = 'mkdir "$5/model"; echo x > "$5/model/x"; echo \'{"accuracy": 0.5}\' > "$5/metrics.json"; echo done'
    evaluation, directory = ran(reviews, script, config={"metrics": None})
    assert (evaluation.score, evaluation.metrics) == (0.5, {"accuracy": 0.5})
    assert not (output_of(directory) / "model").exists()
    kept = make_run(program_config(reviews, script, metrics=None), keep_models=True)
    kept.evaluate(REQUEST, reviews / "kept")
    assert (output_of(reviews / "kept") / "model" / "x").exists()
    assert not (reviews / "kept" / "data").exists()


def test_a_long_last_line_is_read_whole(reviews: Path) -> None:
    script = 'echo start; printf \'{"accuracy": 0.5, "note": "\'; head -c 1000000 /dev/zero | tr "\\0" x; echo \'"}\''
    assert ran(reviews, script)[0].score == 0.5


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo reading; echo broken >&2; exit 3", ProgramError, "status 3.*: broken$"),
        ("kill -9 $$", ProgramKilledError, r"signal 9 \(Killed, .*memory"),
        ("sh -c 'kill -9 $$'; exit $?", ProgramKilledError, r"signal 9 \(Killed, .*memory\); its shell .* status 137"),
        ("exit 128", ProgramError, "status 128"),
        ("", ProgramError, "Exec format error"),
        ("true", MetricError, "last printed line is ''"),
        ("echo f1 0.5; echo x > $5/a.txt; touch $5/b.json", MetricError, r"wrote b.json, a.txt\..*directory}/b.json"),
    ],
)
def test_a_run_that_gives_no_score_says_why(reviews: Path, script: str, kind: Any, message: str) -> None:
    (reviews / "program").write_bytes(b"\0\0")
    (reviews / "program").chmod(0o755)
    config = {} if script else {"command": [str(reviews / "program")]}
    with pytest.raises(kind, match=message):
        ran(reviews, script, config=config)
    assert not (reviews / "run" / "evaluations" / "a-0" / "data").exists()


def test_the_end_of_an_output_is_one_short_line() -> None:
    assert last_lines("a\n\nb\rc\nd \n\n") == "b / c / d"
    assert last_lines("usage: x [-h]\n         [-a]\nx: error: no -b") == "x: error: no -b"
    traceback = 'epoch 1\nTraceback (most recent call last):\n  File "a.py", line 1\n    f(x)\n    ^^^^\n'
    assert last_lines(f"{traceback}KeyError: 'x'") == "KeyError: 'x'"
    assert last_lines(f"{traceback}CUDA error: no\na\nb\nc") == "CUDA error: no / b / c"
    assert last_lines(f"{traceback}RuntimeError: state\n  missing: w") == "RuntimeError: state / missing: w"
    assert last_lines("  a\n  b\n") == "a / b"
    assert last_lines("x" * 1000) == "... " + "x" * 300
    assert last_lines("\x1b]0;T\x07\x1b[2J no") == r"\x1b]0;T\x07\x1b[2J no"


def test_a_program_with_its_own_sets_uses_variables_and_a_clock_that_jumps_back_does_no_harm(
    reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = itertools.count()
    monkeypatch.setattr("time.time", lambda: -86400.0 * next(days))
    command = ["sh", "-c", 'echo "{\\"accuracy\\": 0.$SPLIT}"']
    config = {"data": None, "command": command, "environment": {"SPLIT": "{split_seed}"}}
    evaluation, _ = ran(reviews, "", config=config)
    assert evaluation.score == float(f"0.{REQUEST.split_seed}") and 0 < evaluation.seconds < 3600


def test_a_run_over_changed_data_fails(reviews: Path) -> None:
    config = program_config(reviews, "echo '{\"accuracy\": 1}'")
    run = make_run(config, data=take_snapshot(type_of(config).data_paths))
    assert run.evaluate(REQUEST, reviews / "before").score == 1
    (reviews / "test.jsonl").write_text('{"text": "new", "label": "good"}\n')
    with pytest.raises(DataChangedError, match=r"test.jsonl has changed"):
        run.evaluate(REQUEST, reviews / "after")


def test_a_finished_run_is_salvaged_and_another_one_is_not(reviews: Path) -> None:
    done, directory = ran(reviews, KEEP)
    run = make_run(program_config(reviews, KEEP))
    assert run.salvage(REQUEST, directory) == done
    assert run.salvage(make_request(98, "a", 0, shared_splits=True), directory) is None
    assert replace(run, metric="f1").salvage(REQUEST, directory) is None
    assert make_run(program_config(reviews, "echo '{\"accuracy\": 1}'")).salvage(REQUEST, directory) is None
    assert run.salvage(REQUEST, reviews) is None
    path = directory / "outcome.json"
    for content in ('{"mine": 1}', "[1]", '{"score": 1e999}', "nonsense", "[" * 100_000):
        path.write_text(content)
        assert run.salvage(REQUEST, directory) is None
    path.unlink()
    path.mkdir()
    assert run.salvage(REQUEST, directory) is None


def test_a_program_may_write_any_name_and_begins_with_an_empty_directory(reviews: Path) -> None:
    script = (
        'ls -A "$5"; for name in outcome program; do echo "[1]" > "$5/$name.json"; done; echo "{\\"accuracy\\": 0.5}"'
    )
    config = program_config(reviews, f'[ -z "$(ls -A "$5")" ] || exit 3; {script}')
    for _ in range(2):
        done = make_run(config).evaluate(REQUEST, reviews / "a-0")
    assert (output_of(reviews / "a-0") / "outcome.json").read_text() == "[1]\n"
    assert make_run(config).salvage(REQUEST, reviews / "a-0") == done


def test_a_run_is_repeated_from_what_it_left(reviews: Path) -> None:
    done, directory = ran(reviews, KEEP, division=Division(ratios=(0.5, 0.25, 0.25)))
    again = repeat_program(directory / "outcome.json", reviews / "again")
    assert (again.request, again.score) == (REQUEST, done.score)
    for name in "123":
        assert file_digest(output_of(reviews / "again") / name) == file_digest(output_of(directory) / name)
