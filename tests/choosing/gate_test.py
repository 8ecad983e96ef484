"""The verdicts against a baseline, from the tails of its leads and the look-after-every-run rule."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp import next_runs
from fiesta_allennlp.choosing.probability.leads import Leads, PooledNoise
from fiesta_allennlp.choosing.sampling_rules import judge_against
from fiesta_allennlp.core.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.score_tables import score_rows

DROP = 0.005


def make_rows(means: Dict[str, float], num_seeds: int = 8, sd: float = 0.003) -> List[Dict[str, Any]]:
    noise = stats.norm.ppf((np.arange(num_seeds) + 0.5) / num_seeds) * sd
    return score_rows({name: mean + noise for name, mean in means.items()})


@pytest.fixture
def gate_table(shared_data: Path) -> Path:
    return shared_data / "inputs" / "gate.csv"


def test_a_verdict_is_that_of_the_tails_at_the_error_that_is_allowed() -> None:
    """Leads of the baseline of 2, -2, 0.4 and 0 standard errors, with a drop of one."""
    leads = Leads(
        np.array([4]),
        np.array([[2.0, -2.0, 0.4, -1.0, 0.0]]),
        np.ones((1, 5)),
        np.full((1, 5), 20.0),
        PooledNoise(np.ones(1), np.zeros(1), np.zeros(1), np.array([True])),
    )

    def verdicts(allowed: float, drop: float) -> List[str]:
        return list(judge_against(leads, drop, np.full((1, 5), allowed))[0].tolist())

    assert verdicts(0.05, 1.0) == ["open", "better", "open", "no worse", "open"]
    assert stats.t.sf(1, 20) > 0.15 > stats.t.sf(1.4, 20) and verdicts(0.17, 1.0)[0] == "worse"
    assert verdicts(0.05, 0.1)[0] == "worse" and verdicts(0.05, 3.0)[2] == "no worse"


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.91, "better"), (0.8995, "no worse"), (0.88, "worse"), (0.8955, "open")]
)
def test_four_verdicts(mean: float, verdict: str) -> None:
    answer = next_runs(make_rows({"main": 0.9, "pr": mean}), against="main", max_drop=DROP)
    assert (answer.verdict, answer.result.best) == (verdict, None)
    assert (answer.runs == ()) == (verdict != "open")
    assert ("0.025 or less, or 0.975 or more" in repr(answer)) == (verdict == "open")
    assert answer.result.gate is not None
    (pr,) = answer.result.gate.verdicts
    assert pr.difference == pytest.approx(mean - 0.9)


def test_few_runs_need_more_than_the_target_confidence(gate_table: Path) -> None:
    """pr is no worse with probability .952, but after 6 runs the rule allows an error of .05 x 6 / 16."""
    answer = next_runs(gate_table, against="main", max_drop=DROP)
    assert answer.result.gate is not None
    (pr,) = answer.result.gate.verdicts
    assert (pr.verdict, answer.verdict) == ("open", "open") and 0.95 < pr.prob_no_worse < 1 - 0.05 * 6 / 16
    assert [(run.candidate, run.seed) for run in answer.runs] == [("pr", "8")]
    assert next_runs(gate_table, against="main", max_drop=0.01).verdict == "no worse"
    assert next_runs(gate_table, against="main", max_drop=0.01, min_runs=9).verdict == "open"


def test_for_a_minimized_metric_a_drop_is_a_rise() -> None:
    rows = make_rows({"main": 0.3, "pr": 0.28, "other": 0.33})
    answer = next_runs(rows, against="main", max_drop=DROP, minimise=True)
    assert answer.result.gate is not None
    assert [each.verdict for each in answer.result.gate.verdicts] == ["better", "worse"]
    assert answer.verdict == "worse" and answer.result.gate.verdicts[0].difference == pytest.approx(-0.02)


def test_only_the_baseline_and_those_that_are_open_run() -> None:
    rows = make_rows({"main": 0.9, "clear": 0.85, "near": 0.896}, num_seeds=5)
    answer = next_runs(rows, against="main", max_drop=DROP, workers=6)
    assert answer.verdict == "worse", "one is"
    assert sorted(run.candidate for run in answer.runs) == ["main"] * 3 + ["near"] * 3
    done = next_runs(rows, against="main", max_drop=DROP, workers=6, done=["main"])
    assert {run.candidate for run in done.runs} == {"near"}


def test_a_gate_that_no_run_can_open_gives_up() -> None:
    rows = make_rows({"main": 0.9, "pr": 0.895}, num_seeds=45)
    answer = next_runs(rows, against="main", max_drop=DROP)
    assert (answer.verdict, answer.decision.stopped_by, answer.decision.gave_up) == ("open", "max_evaluations", True)
    with pytest.raises(ConfigError, match=r"'mian'.*'main'"):
        next_runs(rows, against="mian", max_drop=DROP)
    with pytest.raises(ConfigError, match="--against needs --max-drop"):
        next_runs(rows, against="main")
    for options in ({"margin": 0.1}, {"budget": 200}, {"stop": "glr"}, {"strategy": "non_adaptive_fc"}):
        with pytest.raises(ConfigError, match="--against cannot be combined with"):
            next_runs(rows, against="main", max_drop=DROP, **options)


def test_a_gate_whose_rivals_all_dropped_out_has_no_verdict() -> None:
    failed = [{"candidate": "pr", "seed": str(seed), "score": "failed"} for seed in range(3)]
    answer = next_runs([*make_rows({"main": 0.9}), *failed], against="main", max_drop=DROP)
    assert (answer.verdict, answer.decision.stopped_by, answer.runs) == ("open", "failures", ())
    assert answer.result.gate is not None and answer.result.gate.verdicts == ()


def test_a_gate_over_two_tasks_asks_about_the_average() -> None:
    rows = [
        {**row, "task": task, "score": row["score"] + shift * (row["candidate"] == "pr")}
        for task, shift in (("easy", 0.02), ("hard", -0.01))
        for row in make_rows({"main": 0.9, "pr": 0.9})
    ]
    assert next_runs(rows, against="main", max_drop=DROP).verdict == "better"
    hard = [row for row in rows if row["task"] == "hard"]
    assert next_runs(hard, against="main", max_drop=DROP).verdict == "worse"


EVALUATE = """awk -v seed="$2" -v name="$1" 'BEGIN { srand(seed * 7 + length(name))
  noise = rand() + rand() + rand() - 1.5
  printf "%.5f", (name == "pr" ? 0.899 : 0.9) + 0.0005 * noise }'"""


def test_the_step_of_the_workflow_passes(tmp_path: Path) -> None:
    workflow = (REPOSITORY / "examples" / "ci" / "gate.yml").read_text()
    (step,) = re.findall(r"- name: gate\n        run: \|\n((?:          .*\n)+)", workflow)
    (tmp_path / "evaluate.sh").write_text(EVALUATE)
    (tmp_path / "scores.csv").write_text("candidate,seed,score\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", step], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "pr is no worse than main" in done.stdout, done.stdout + done.stderr
    assert len((tmp_path / "scores.csv").read_text().splitlines()) > 6


def test_a_candidate_that_failed_is_judged_by_its_scores_or_stays_open() -> None:
    failed = [{"candidate": "pr", "seed": 100 + seed, "score": "failed"} for seed in range(3)]
    rows = make_rows({"main": 0.9, "good": 0.91})
    answer = next_runs([*rows, *make_rows({"pr": 0.88}), *failed], against="main", max_drop=DROP)
    assert answer.verdict == "worse" and answer.runs == () and "pr is worse than main" in repr(answer)
    answer = next_runs([*rows, *failed], against="main", max_drop=DROP)
    assert answer.verdict == "open" and answer.runs == ()
    assert "Open: pr left" in repr(answer) and "Stop: open." in repr(answer)


def test_a_drop_without_a_baseline_is_refused() -> None:
    with pytest.raises(ConfigError, match="--max-drop needs --against"):
        next_runs(make_rows({"main": 0.9, "pr": 0.88}), max_drop=DROP)
