import argparse
import json
import tempfile
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, cast

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as some

from fiesta_allennlp.documents.settings import DocumentSettings
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


def test_later_layers_win_and_the_rest_are_defaults() -> None:
    settings = merge({"workers": 2, "metric": "f1"}, {"workers": 3})
    assert (settings.workers, settings.metric, settings.splits) == (3, "f1", "shared")


@pytest.mark.parametrize(
    "same",
    [
        {"confidence": 0.95},
        {"strategy": "top_two"},
        {"strategy": {"type": "top_two"}},
        {"belief": "split_paired"},
        {"stop": "rule_of_three"},
        {"margin": 0.0},
        {"workers": 7},
    ],
)
def test_a_default_that_is_typed_decides_nothing_else(same: Dict[str, Any]) -> None:
    assert Settings(**same).deciding() == Settings().deciding()


def test_what_decides_has_the_defaults_of_the_strategy() -> None:
    told, built = Settings().deciding(), cast(FixedConfidence, build_strategy(Settings(), ["a", "b"]))
    assert (told["confidence"], told["margin"]) == (built.confidence, built.margin)
    assert isinstance(built.stop, StoppingRule.by_name(told["stop"]["type"]))
    with_budget = {**told, "strategy": {"type": "sequential_halving"}, "budget": 30, "confidence": None}
    assert Settings(budget=30).deciding() == with_budget
    assert Settings(max_hours=3.0).deciding() == {**told, "max_hours": 3.0}


def test_a_budget_takes_the_place_of_a_confidence_and_the_other_way_round() -> None:
    confident = {"confidence": 0.9, "strategy": "bts", "margin": 0.1, "metric": "f1"}
    assert merge(confident, {"budget": 20}) == Settings(budget=20, metric="f1")
    assert merge({"budget": 20, "strategy": "non_adaptive_fb"}, {"confidence": 0.8}) == Settings(confidence=0.8)
    again = merge(confident, {"confidence": 0.99})
    assert (again.confidence, again.strategy, again.margin) == (0.99, "bts", 0.1)


def test_settings_survive_json() -> None:
    settings = merge({"candidates": ["a", "b"], "strategy": {"type": "bts"}, "seed": 2**100})
    assert merge(json.loads(json.dumps(as_json(settings)))) == settings


def test_a_file_may_use_dashes(tmp_path: Path) -> None:
    (tmp_path / "s.jsonnet").write_text("{ 'max-evaluations': 10 + 2, metric: 'f1', candidates: ['a', 'b'] }")
    settings = merge(settings_from_file(tmp_path / "s.jsonnet", Settings))
    assert (settings.max_evaluations, settings.candidates) == (12, ("a", "b"))


def test_ratios_survive_a_command_line_and_a_store() -> None:
    settings = merge({"split_ratios": [0.64, 0.16, 0.2], "candidates": ["a"]})
    assert as_typed(settings, positional="candidates") == ["a", "--split-ratios", "0.64,0.16,0.2"]
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    assert parser.parse_args(["--split-ratios", "0.64,0.16,0.2"]).split_ratios == settings.split_ratios
    assert changed_options(as_json(settings), settings) == []
    assert changed_options(as_json(settings), Settings(split_ratios=(0.6, 0.2, 0.2))) == [
        "--split-ratios was [0.64, 0.16, 0.2] and is now [0.6, 0.2, 0.2]"
    ]


def test_an_option_that_is_newer_than_a_selection_had_its_default_there() -> None:
    old = {name: value for name, value in as_json(Settings()).items() if name != "score"}
    assert changed_options(old, Settings()) == []
    assert changed_options(old, Settings(score="validation")) == ['--score was "test" and is now "validation"']


def test_a_misspelt_setting_is_an_error_with_the_near_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'workrs' is an unknown setting. Did you mean 'workers'"):
        merge({"workrs": 1})


def test_a_missing_or_broken_settings_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none.jsonnet: there is no such file"):
        settings_from_file(tmp_path / "none.jsonnet", Settings)
    for content, message in (
        ("{", "cannot be read"),
        ("[1, 2]", "must be a Jsonnet object .* but is a list"),
        ("fiesta select a.jsonnet --workers 2", r"cannot be read as Jsonnet.*\n.*like this: \{ metric: 'acc"),
        ("{ workrs: 2, 'dry-run': true }", "'dry_run' is an unknown setting. 'workrs' is .*Valid settings: strat"),
    ):
        (tmp_path / "bad.jsonnet").write_text(content)
        with pytest.raises(ConfigError, match=f"bad.jsonnet: {message}"):
            settings_from_file(tmp_path / "bad.jsonnet", Settings)
    (tmp_path / "s.jsonnet").write_text("{ cuda_devices: [0, 1] }")
    assert settings_from_file(tmp_path / "s.jsonnet", Settings) == {"cuda_devices": "0,1"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"splits": "paired"}, "--splits must be one of shared, independent, official but got 'paired'"),
        ({"split_ratios": [0.5, 0.3]}, "--split-ratios with --score test: .* must be 2 numbers"),
        ({"split_ratios": [0.5, "x", 0.1]}, '--split-ratios must be numbers above 0 and below 1 but got "x"'),
        ({"split_ratios": [10**400, 0.5, 0.5]}, "--split-ratios must be numbers above 0 and below 1 but got 1000"),
        ({"split_ratios": [0.5, 0.3, 0.2], "score": "validation"}, "must be 2 numbers above 0, for train, validation"),
        ({"split_ratios": [0.5, 0.3, 0.2], "splits": "official"}, "--split-ratios is about random splits"),
        ({"group_by": "none", "splits": "official"}, "--group-by is about random splits"),
        ({"max_hours": 0}, "--max-hours must be above 0 but got 0"),
        ({"ship_data": 1}, "--ship-data must be true or false but got 1"),
        ({"workers": True}, "--workers must be a whole number or auto but got true"),
        ({"max_failures": 0}, "--max-failures must be at least 1 but got 0"),
        ({"seed": -1}, "--seed must not be negative but got -1"),
        ({"include_package": "mine"}, '--include-package must be a list but got "mine"'),
    ],
)
def test_values_out_of_range_are_errors(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        merge(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"type": "top_two", "belief": {"type": "split_paired"}}),
        ({"confidence": 0.9}, {"type": "top_two", "confidence": 0.9, "belief": {"type": "split_paired"}}),
        ({"budget": 20}, {"type": "sequential_halving", "budget": 20, "belief": {"type": "split_paired"}}),
        (
            {"strategy": '{"type": "top_two", "beta": 0.3}', "belief": "logit_student_t", "margin": 0.0},
            {"type": "top_two", "beta": 0.3, "margin": 0.0, "belief": {"type": "logit_student_t"}},
        ),
    ],
)
def test_options_become_the_strategys_config(given: Dict[str, Any], expected: Dict[str, Any]) -> None:
    assert merge(given).strategy_params() == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": '{"type": "top_two", "confidence": 0.9}', "confidence": 0.8}, "--confidence 0.8 contradicts"),
        ({"strategy": "{beta: 1}"}, "is not valid JSON"),
        ({"strategy": '{"beta": 1}'}, "expected a name or a JSON object with a 'type'"),
        ({"belief": 3}, "--belief: expected a name"),
    ],
)
def test_contradictions_and_broken_json_are_errors(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        merge(given).strategy_params()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 1}, "budget must be at least 2"),
        ({"belief": "student"}, "--belief student.*Did you mean 'student_t'"),
        ({"belief": "dirichlet_f_measure"}, "--belief dirichlet_f_measure needs counts .* such as split_paired"),
        ({"belief": {"type": "dirichlet_f_measure", "beta": "half"}}, "'beta' must be a number"),
        ({"stop": "glrr"}, "glrr.*glr"),
        ({"stop": "glr", "budget": 20}, "--stop cannot be combined with --strategy sequential_halving"),
        ({"strategy": {"type": "top_two", "betta": 0.5}}, "betta"),
        ({"strategy": {"type": "top_two", "beta": 2}}, "beta"),
        ({"strategy": "sequential_halving"}, "--budget N"),
        ({"strategy": "top_two", "budget": 20}, "--budget cannot be combined with"),
        ({"strategy": "non_adaptive_fb", "budget": 9, "margin": 0.1}, "--margin cannot be combined with"),
    ],
)
def test_choices_that_cannot_work_are_refused(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_strategy(merge(given), ["able", "blind"])


def test_the_executor_takes_its_options_from_flags_and_from_json() -> None:
    flags = {"executor": "ray", "ray_address": "local", "gpus_per_evaluation": 0.25, "ship_data": True}
    expected = {"type": "ray", "ray_address": "local", "gpus_per_evaluation": 0.25, "ship_data": True}
    assert merge(flags).executor_params() == expected
    json_text = '{"type": "ray", "ray_address": "local", "gpus_per_evaluation": 0.25}'
    assert merge({"executor": json_text, "ship_data": True}).executor_params() == expected
    devices = {"type": "processes", "cuda_devices": ["0", "1"]}
    assert merge({"cuda_devices": "0, 1"}).executor_params() == devices
    assert merge({"executor": {"type": "processes", "cuda_devices": [0, 1]}}).executor_params() == devices
    with pytest.raises(ConfigError, match="--ray-address auto contradicts 'ray_address': local in --executor"):
        merge({"executor": json_text, "ray_address": "auto"}).executor_params()


def test_another_executor_takes_the_options_of_the_one_below_away() -> None:
    on_ray = as_json(merge({"executor": "ray", "ray_address": "local", "workers": 4}))
    assert merge(on_ray, {"executor": "processes"}) == Settings(executor="processes", workers=4)
    assert merge(on_ray, {"executor": "ray", "workers": "auto"}).ray_address == "local"
    assert merge({"ray_address": "local"}, {"executor": "ray"}).ray_address == "local"


def test_candidates_are_named_by_their_files_or_by_hand() -> None:
    specs = read_candidates(("x/a.jsonnet", "other=y/a.jsonnet"))
    assert [(spec.name, spec.place) for spec in specs] == [("a", "x/a.jsonnet"), ("other", "y/a.jsonnet")]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ((), "at least 2 candidates but got 0: none"),
        (("a.jsonnet",), "at least 2 candidates but got 1: a"),
        (("x/a.jsonnet", "y/a.jsonnet"), "two candidates are named 'a': x/a.jsonnet and y/a.jsonnet.*NAME=y/a.jsonnet"),
        (("a=x.jsonnet", "c\n.jsonnet"), r"candidate 'c\\n=c\\n.jsonnet': a name must not contain line feeds"),
    ],
)
def test_candidates_that_cannot_be_told_apart_are_errors(candidates: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_candidates(Settings(candidates=candidates))


def test_whether_settings_go_together_is_asked_once_flags_lie_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.jsonnet").write_text("{ split_ratios: [0.8, 0.2] }")
    given = settings_from_file(tmp_path / "s.jsonnet", Settings)
    assert merge(given, {"score": "validation"}).split_ratios == (0.8, 0.2)
    assert merge(given).division.parts == ("train", "test")
    with pytest.raises(ConfigError, match="--split-ratios with --score test"):
        merge(given, {"split_ratios": [0.8, 0.1, 0.05, 0.05]})


ANYTHING = some.recursive(
    some.one_of(some.none(), some.booleans(), some.integers(), some.floats(), some.text(max_size=8)),
    lambda inner: some.one_of(
        some.lists(inner, max_size=3), some.dictionaries(some.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@limits(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    some.dictionaries(
        some.sampled_from([*(f.name for f in fields(Settings)), "max-evaluations", "nonsense"]), ANYTHING, max_size=5
    )
)
def test_anything_in_a_settings_file_is_taken_or_refused_with_its_name(values: Dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "s.jsonnet"
        path.write_text(json.dumps(values, allow_nan=False, default=str) if _is_json(values) else "{ a: ")
        with suppress(ConfigError):  # any other error would be a traceback
            merge(settings_from_file(path, Settings)).strategy_params()


def _is_json(values: Any) -> bool:
    try:
        json.dumps(values, allow_nan=False)
    except ValueError:
        return False
    return True


def test_what_decides_the_scores_must_not_change() -> None:
    old = as_json(Settings(metric="f1", workers=1))
    assert changed_options(old, Settings(metric="f1", workers=8, confidence=0.99)) == []
    assert changed_options(old, Settings(metric="accuracy", splits="independent")) == [
        '--metric was "f1" and is now "accuracy"',
        '--splits was "shared" and is now "independent"',
    ]


@pytest.mark.parametrize("record", [Settings, ReplaySettings])
def test_on_official_splits_nothing_is_paired(record: Any) -> None:
    official = record(splits="official")
    assert official.strategy_params()["belief"] == {"type": "unpaired"}
    assert not build_strategy(official, ["a", "b"]).belief.pairs_splits
    with pytest.raises(ConfigError, match="--belief logit_split_paired compares .*Leave --belief out for unpaired"):
        build_strategy(record(splits="official", belief="logit_split_paired"), ["a", "b"])
    assert record(splits="independent").strategy_params()["belief"] == {"type": "split_paired"}


def test_the_stopping_rule_goes_to_the_strategy() -> None:
    assert "stop" not in Settings().strategy_params()
    assert Settings(stop="glr").strategy_params()["stop"] == {"type": "glr"}
    assert Settings(stop='{"type": "glr"}').strategy_params()["stop"] == {"type": "glr"}
    assert Settings(strategy={"type": "top_two", "stop": "glr"}, stop="glr").strategy_params()["stop"] == {
        "type": "glr"
    }
    with pytest.raises(ConfigError, match="--stop .* contradicts 'stop'"):
        Settings(strategy={"type": "top_two", "stop": "bayesian"}, stop="glr").strategy_params()
    assert merge({"stop": "glr"}, {"budget": 30}).stop is None


@pytest.mark.parametrize(
    ("given", "now"),
    [
        (None, None),
        ("thompson", "thompson"),
        ("ttts", {"type": "top_two"}),
        ('{"type": "ttts", "num_starts": 4}', {"type": "top_two", "num_starts": 4}),
        ({"type": "ttts", "beta": 0.3}, {"type": "top_two", "beta": 0.3}),
        (
            {"type": "ttts", "challenger": "posterior", "beta": 0.5},
            {"type": "ttts", "challenger": "posterior", "beta": 0.5},
        ),
    ],
)
def test_a_strategy_of_an_earlier_version_stays_what_it_was(given: Any, now: Any) -> None:
    found = of_earlier_version({"strategy": given, "metric": "f1", "belief": "split_paired"})
    assert found == {"strategy": now, "metric": "f1", "belief": "split_paired", "stop": "bayesian"}


@pytest.mark.parametrize(
    "given", [{"budget": 9}, {"stop": "glr"}, {"strategy": {"type": "thompson", "stop": "glr"}, "budget": None}]
)
def test_an_earlier_selection_with_a_budget_or_a_rule_keeps_it(given: Any) -> None:
    assert of_earlier_version(given) == given


@pytest.mark.parametrize(
    ("record", "given", "message"),
    [
        (DocumentSettings, {"time_limit": None}, "--time-limit must be a number but got null"),
        (DocumentSettings, {"workers": None}, "--workers must be a whole number but got null"),
        (Settings, {"include_package": None}, "--include-package must be a list but got null"),
        (ReplaySettings, {"repetitions": None}, "--repetitions must be a whole number but got null"),
        (ReplaySettings, {"with_replacement": 1}, "--with-replacement must be true or false but got 1"),
    ],
)
def test_null_is_a_value_of_optional_settings_alone(record: Any, given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        record(**given)
    record(**dict.fromkeys(("confidence", "budget", "margin", "seed")))


def test_the_seed_has_an_earlier_name(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    for name in ("--seed", "--entropy"):
        assert typed_options(parser.parse_args([name, "5"]), Settings) == {"seed": 5}
    (tmp_path / "options.jsonnet").write_text("{ entropy: 5 }")
    assert settings_from_file(tmp_path / "options.jsonnet", Settings) == {"seed": 5}
    assert as_typed(merge({"seed": 5}), positional="candidates") == ["--seed", "5"]
    with pytest.raises(ConfigError, match="'sed' is an unknown setting"):
        merge({"sed": 5})


def test_runs_that_share_a_gpu_are_so_many_devices() -> None:
    params = merge({"cuda_devices": "0,1", "runs_per_gpu": 2}).executor_params()
    assert params == {"type": "processes", "cuda_devices": ["0", "1", "0", "1"]}
    with pytest.raises(ConfigError, match="--runs-per-gpu is about the devices of --cuda-devices"):
        merge({"runs_per_gpu": 1}).executor_params()
    with pytest.raises(ConfigError, match="--runs-per-gpu must be at least 1 but got 0"):
        merge({"cuda_devices": "0", "runs_per_gpu": 0})
    with pytest.raises(ConfigError, match="--runs-per-gpu must be at least 1 but got 0"):
        merge(
            {"executor": {"type": "processes", "cuda_devices": ["0"], "runs_per_gpu": 0}},
        ).executor_params()


def test_options_of_sbatch_are_typed_one_by_one_and_typed_again() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    args = parser.parse_args(
        ["--executor", "slurm", "--slurm", "qos=long", "--slurm", "exclude=a,b", "--job-time", "9"]
    )
    settings = merge(typed_options(args, Settings))
    expected = {"type": "slurm", "slurm": ("qos=long", "exclude=a,b"), "job_time": "9"}
    assert settings.executor_params() == expected
    assert merge(as_json(settings)).executor_params() == expected
    words = as_typed(settings, positional="candidates")
    assert typed_options(parser.parse_args(words), Settings) == typed_options(args, Settings)
