import argparse
import json
import tempfile
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Dict, List, cast

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as some

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.selection.options import add_options, as_json, as_typed, changed_options, typed_options
from fiesta_allennlp.selection.settings import of_earlier_version, settings_from_file
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.strategies import StoppingRule
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.trainings.candidate_values import read_candidates
from fiesta_allennlp.trainings.candidates import load_candidates
from fiesta_allennlp.trainings.settings import Settings, merge

RATIOS_CHANGED = "--split-ratios was [0.64, 0.16, 0.2] and is now [0.6, 0.2, 0.2]"


TYPED = {"confidence": 0.95, "belief": "split_paired", "stop": "rule_of_three", "margin": 0.0, "workers": 7}


@pytest.mark.parametrize("strategy", ["top_two", {"type": "top_two"}])
def test_a_default_that_is_typed_decides_nothing_else(strategy: Any) -> None:
    assert Settings(strategy=strategy, **TYPED).deciding() == Settings().deciding()


def test_what_decides_has_the_defaults_of_the_strategy() -> None:
    told, built = Settings().deciding(), cast(FixedConfidence, build_strategy(Settings(), ["a", "b"]))
    assert (told["confidence"], told["margin"]) == (built.confidence, built.margin)
    assert isinstance(built.stop, StoppingRule.by_name(told["stop"]["type"]))
    with_budget = {**told, "strategy": {"type": "sequential_halving"}, "budget": 30, "confidence": None}
    assert Settings(budget=30).deciding() == with_budget
    assert Settings(max_hours=3.0).deciding() == {**told, "max_hours": 3.0}


ON_RAY = {"executor": "ray", "ray_address": "local", "workers": 4}
CONFIDENT = {"confidence": 0.9, "strategy": "bts", "margin": 0.1, "metric": "f1"}


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        (({"workers": 2, "metric": "f1"}, {"workers": 3}), {"workers": 3, "metric": "f1"}),
        ((CONFIDENT, {"budget": 20}), {"budget": 20, "metric": "f1"}),
        ((CONFIDENT, {"confidence": 0.99}), {**CONFIDENT, "confidence": 0.99}),
        (({"budget": 20, "strategy": "non_adaptive_fb"}, {"confidence": 0.8}), {"confidence": 0.8}),
        ((ON_RAY, {"executor": "processes"}), {"executor": "processes", "workers": 4}),
        (({"ray_address": "local"}, {"executor": "ray"}), {"executor": "ray", "ray_address": "local"}),
        (({"split_ratios": [0.8, 0.2]}, {"score": "validation"}), {"split_ratios": (0.8, 0.2), "score": "validation"}),
    ],
)
def test_later_layers_win_and_take_what_does_not_go_with_them_away(layers: Any, merged: Dict[str, Any]) -> None:
    found = merge(*layers)
    assert found == Settings(**merged)
    assert merge(json.loads(json.dumps(as_json(found)))) == found


def test_a_missing_or_broken_settings_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none.jsonnet: no such file"):
        settings_from_file(tmp_path / "none.jsonnet", Settings)
    for content, message in (
        ("{", "is not valid Jsonnet"),
        ("[1, 2]", "must be a Jsonnet object"),
        ("{ workrs: 2, 'dry-run': true }", "'dry_run' is an unknown setting. 'workrs' is .*Valid settings: strat"),
    ):
        (tmp_path / "bad.jsonnet").write_text(content)
        with pytest.raises(ConfigError, match=f"bad.jsonnet:? {message}"):
            settings_from_file(tmp_path / "bad.jsonnet", Settings)
    (tmp_path / "s.jsonnet").write_text("{ 'max-evaluations': 10 + 2, cuda_devices: [0, 1], entropy: 5 }")
    read = settings_from_file(tmp_path / "s.jsonnet", Settings)
    assert read == {"max_evaluations": 12, "cuda_devices": "0,1", "seed": 5}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"splits": "paired"}, "--splits must be one of shared, independent, official but got 'paired'"),
        ({"split_ratios": [0.5, 0.3]}, "--split-ratios with --score test: .* must be 2 positive"),
        ({"split_ratios": [0.5, "x", 0.1]}, '--split-ratios must be numbers .* but got "x"'),
        ({"split_ratios": [10**400, 0.5, 0.5]}, "--split-ratios must be numbers .* but got 1000"),
        ({"split_ratios": [0.5, 0.3, 0.2], "score": "validation"}, "must be 2 positive numbers"),
        ({"split_ratios": [0.5, 0.3, 0.2], "splits": "official"}, "--split-ratios applies only to random splits"),
        ({"group_by": "none", "splits": "official"}, "--group-by applies only to random splits"),
        ({"max_hours": 0}, "--max-hours must be above 0 but got 0"),
        ({"ship_data": 1}, "--ship-data must be true or false but got 1"),
        ({"workers": True}, "--workers must be a whole number or auto but got true"),
        ({"max_failures": 0}, "--max-failures must be at least 1 but got 0"),
        ({"seed": -1}, "--seed must not be negative but got -1"),
        ({"include_package": "mine"}, '--include-package must be a list but got "mine"'),
        ({"cuda_devices": "0", "runs_per_gpu": 0}, "--runs-per-gpu must be at least 1 but got 0"),
        ({"strategy": '{"type": "top_two", "confidence": 0.9}', "confidence": 0.8}, "--confidence 0.8 contradicts"),
        ({"strategy": {"type": "top_two", "stop": "bayesian"}, "stop": "glr"}, "--stop .* contradicts 'stop'"),
        ({"strategy": "{beta: 1}"}, "is not valid JSON"),
        ({"strategy": '{"beta": 1}'}, "must be a name or a JSON object with a 'type'"),
        ({"belief": 3}, "--belief must be a name"),
        ({"budget": 1}, "budget must be at least 2"),
        ({"belief": "student"}, "--belief student.*Did you mean 'student_t'"),
        ({"belief": "dirichlet_f_measure"}, "--belief dirichlet_f_measure needs counts .* such as split_paired"),
        ({"stop": "glr", "budget": 20}, "--strategy sequential_halving .*'stop'"),
        ({"strategy": {"type": "top_two", "betta": 0.5}}, "betta"),
        ({"strategy": "sequential_halving"}, "--strategy sequential_halving .*'budget'"),
        ({"strategy": "top_two", "budget": 20}, "--strategy top_two .*'budget'"),
        ({"strategy": "non_adaptive_fb", "budget": 9, "margin": 0.1}, "--strategy non_adaptive_fb .*'margin'"),
    ],
)
def test_values_that_cannot_work_are_refused(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_strategy(merge(given), ["able", "blind"])


X, OF_X, GLR = {"belief": "x"}, {"belief": {"type": "x"}}, {"stop": "glr"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"confidence": 0.9}, {"type": "top_two", "confidence": 0.9, "belief": {"type": "split_paired"}}),
        ({"budget": 20}, {"type": "sequential_halving", "budget": 20, "belief": {"type": "split_paired"}}),
        ({"stop": '{"type": "glr"}', **X}, {"type": "top_two", **OF_X, "stop": {"type": "glr"}}),
        (
            {"strategy": '{"type": "bts", "beta": 0.3}', "margin": 0.0, **X},
            {"type": "bts", "beta": 0.3, "margin": 0.0, **OF_X},
        ),
        ({"strategy": {"type": "bts", "stop": "glr"}, **GLR, **X}, {"type": "bts", **OF_X, "stop": {"type": "glr"}}),
    ],
)
def test_options_become_the_strategys_config(given: Dict[str, Any], expected: Dict[str, Any]) -> None:
    assert merge(given).strategy_params() == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workers": 8, "confidence": 0.99}, []),
        ({"score": "validation"}, ['--score was "test" and is now "validation"']),
        (
            {"metric": "f1", "split_ratios": (0.6, 0.2, 0.2)},
            ['--metric was "accuracy" and is now "f1"', RATIOS_CHANGED],
        ),
    ],
)
def test_what_decides_the_scores_must_not_change(changes: Dict[str, Any], said: List[str]) -> None:
    """An option that is newer than the selection had its default there."""
    before = {"metric": "accuracy", **({} if "score" in changes else {"split_ratios": [0.64, 0.16, 0.2]})}
    old = {name: value for name, value in as_json(merge(before)).items() if name != "score"}
    assert changed_options(old, merge(before, changes)) == said


def test_the_executor_takes_its_options_from_flags_and_from_json() -> None:
    flags = {"ray_address": "local", "gpus_per_evaluation": 0.25, "ship_data": True}
    expected = {"type": "ray", **flags}
    assert merge({"executor": "ray", **flags}).executor_params() == expected
    json_text = '{"type": "ray", "ray_address": "local", "gpus_per_evaluation": 0.25}'
    assert merge({"executor": json_text, "ship_data": True}).executor_params() == expected
    devices = {"type": "processes", "cuda_devices": ["0", "1"]}
    assert merge({"cuda_devices": "0, 1"}).executor_params() == devices
    assert merge({"executor": {"type": "processes", "cuda_devices": [0, 1]}}).executor_params() == devices
    shared = merge({"cuda_devices": "0,1", "runs_per_gpu": 2}).executor_params()
    assert shared == {"type": "processes", "cuda_devices": ["0", "1", "0", "1"]}
    for wrong, message in (
        ({"executor": json_text, "ray_address": "auto"}, "--ray-address auto contradicts 'ray_address': local"),
        ({"runs_per_gpu": 1}, "--runs-per-gpu needs --cuda-devices"),
        ({"executor": {"type": "processes", "cuda_devices": ["0"], "runs_per_gpu": 0}}, "--runs-per-gpu .* at least 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            merge(wrong).executor_params()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ((), "at least 2 candidates but got 0: none"),
        (("a.jsonnet",), "at least 2 candidates but got 1: a"),
        (("x/a.jsonnet", "y/a.jsonnet"), "two candidates are named 'a': x/a.jsonnet and y/a.jsonnet.*NAME=y/a.jsonnet"),
        (("a=x.jsonnet", "c\n.jsonnet"), r"candidate 'c\\n=c\\n.jsonnet': a name must not contain line breaks"),
    ],
)
def test_candidates_that_cannot_be_told_apart_are_errors(candidates: Any, message: str) -> None:
    """They are named by their files or by hand."""
    with pytest.raises(ConfigError, match=message):
        load_candidates(Settings(candidates=candidates))
    specs = read_candidates(("x/a.jsonnet", "other=y/a.jsonnet"))
    assert [(spec.name, spec.place) for spec in specs] == [("a", "x/a.jsonnet"), ("other", "y/a.jsonnet")]


ANYTHING = some.recursive(
    some.one_of(some.none(), some.booleans(), some.integers(), some.floats(), some.text(max_size=8)),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


NAMES = [*(field.name for field in fields(Settings)), "max-evaluations", "nonsense"]


@limits(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(some.dictionaries(some.sampled_from(NAMES), ANYTHING, max_size=5))
def test_anything_in_a_settings_file_is_taken_or_refused_with_its_name(values: Dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "s.jsonnet"
        with suppress(ValueError):  # JSON has no such number
            path.write_text(json.dumps(values, allow_nan=False))
        with suppress(ConfigError):  # any other error would be a traceback
            merge(settings_from_file(path, Settings)).strategy_params()


@pytest.mark.parametrize("record", [Settings, ReplaySettings])
def test_on_official_splits_nothing_is_paired(record: Any) -> None:
    official = record(splits="official")
    assert official.strategy_params()["belief"] == {"type": "unpaired"}
    assert not build_strategy(official, ["a", "b"]).belief.pairs_splits
    with pytest.raises(ConfigError, match="--belief logit_split_paired .*unpaired"):
        build_strategy(record(splits="official", belief="logit_split_paired"), ["a", "b"])
    assert record(splits="independent").strategy_params()["belief"] == {"type": "split_paired"}


@pytest.mark.parametrize(
    ("given", "now"),
    [
        (None, None),
        ("ttts", {"type": "top_two"}),
        ('{"type": "ttts", "num_starts": 4}', {"type": "top_two", "num_starts": 4}),
        ({"type": "ttts", "challenger": "posterior"}, {"type": "ttts", "challenger": "posterior"}),
    ],
)
def test_a_strategy_of_an_earlier_version_stays_what_it_was(given: Any, now: Any) -> None:
    assert of_earlier_version({"strategy": given, "a": 1}) == {"strategy": now, "a": 1, "stop": "bayesian"}
    for kept in ({"budget": 9}, {"stop": "glr"}, {"strategy": {"type": "thompson", "stop": "glr"}, "budget": None}):
        assert of_earlier_version(kept) == kept


def test_the_seed_has_an_earlier_name() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    assert typed_options(parser.parse_args(["--entropy", "5"]), Settings) == {"seed": 5}
    assert as_typed(merge({"seed": 5}), positional="candidates") == ["--seed", "5"]


def test_options_are_typed_and_typed_again() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    typed = ["--executor", "slurm", "--slurm", "qos=long", "--slurm", "exclude=a,b", "--job-time", "9"]
    settings = merge(typed_options(parser.parse_args([*typed, "--split-ratios", "0.64,0.16,0.2"]), Settings))
    assert settings.split_ratios == (0.64, 0.16, 0.2)
    expected = {"type": "slurm", "slurm": ("qos=long", "exclude=a,b"), "job_time": "9"}
    assert settings.executor_params() == expected
    assert merge(as_json(settings)).executor_params() == expected
    again = as_typed(replace(settings, candidates=("a",)), positional="candidates")
    assert sorted(again) == sorted(["a", *typed, "--split-ratios", "0.64,0.16,0.2"])
