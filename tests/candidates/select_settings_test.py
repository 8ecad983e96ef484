import argparse
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, cast
from unittest.mock import Mock

import pytest

from fiesta_allennlp.candidates.points import parse_candidates
from fiesta_allennlp.candidates.preparation import build_executor, check_gpus, load_candidates
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.choosing import StoppingRule
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.strategy import build_strategy
from fiesta_allennlp.core.choice_settings import settings_from_file
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.options import add_options, changed_options, command_words, settings_to_json, typed_options
from fiesta_allennlp.core.records import Candidate

TYPED = {"confidence": 0.95, "belief": "moderated_t", "stop": "early_looks", "margin": 0.0, "workers": 7}


@pytest.mark.parametrize("strategy", ["top_two", {"type": "top_two"}])
def test_a_default_that_is_typed_decides_nothing_else(strategy: Any) -> None:
    assert Settings(strategy=strategy, **TYPED).decision_options() == Settings().decision_options()


def test_what_decides_has_the_defaults_of_the_strategy() -> None:
    told, built = Settings().decision_options(), cast(FixedConfidence, build_strategy(Settings(), ["a", "b"]))
    assert (told["confidence"], told["margin"]) == (built.confidence, built.margin)
    assert isinstance(built.stop, StoppingRule.by_name(told["stop"]["type"]))
    with_budget = {**told, "strategy": {"type": "sequential_halving"}, "budget": 30, "confidence": None}
    assert Settings(budget=30).decision_options() == with_budget
    assert Settings(max_hours=3.0).decision_options() == {**told, "max_hours": 3.0}


ON_RAY = {"executor": "ray", "executor_option": ["address=local"], "workers": 4}
HALVING_OF_THE_PAPER = {"preset": "paper", "belief": "student_t", "splits": "independent", "budget": 20}
OF_THE_PAPER = {
    "preset": "paper",
    "strategy": "ttts",
    "belief": "student_t",
    "stop": "bayesian",
    "splits": "independent",
}
CONFIDENT = {"confidence": 0.9, "strategy": "bts", "margin": 0.1, "metric": "f1"}


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        (({"workers": 2, "metric": "f1"}, {"workers": 3}), {"workers": 3, "metric": "f1"}),
        ((CONFIDENT, {"budget": 20}), {"budget": 20, "metric": "f1"}),
        ((CONFIDENT, {"confidence": 0.99}), {**CONFIDENT, "confidence": 0.99}),
        (({"budget": 20, "strategy": "non_adaptive_fb"}, {"confidence": 0.8}), {"confidence": 0.8}),
        (({"preset": "paper", "strategy": "bts"},), {**OF_THE_PAPER, "strategy": "bts"}),
        (({"stop": "glr"}, {"preset": "paper"}), OF_THE_PAPER),
        (({"preset": "paper"}, {"budget": 20}), HALVING_OF_THE_PAPER),
        ((ON_RAY, {"executor": "processes"}), {"executor": "processes", "workers": 4}),
        (({"executor_option": ["a=b"]}, {"executor": "ray"}), {"executor": "ray", "executor_option": ("a=b",)}),
        (({"split_ratios": [0.8, 0.2]}, {"score": "validation"}), {"split_ratios": (0.8, 0.2), "score": "validation"}),
    ],
)
def test_later_layers_win_and_take_what_does_not_go_with_them_away(layers: Any, merged: Dict[str, Any]) -> None:
    found = Settings.from_layers(*layers)
    assert found == Settings(**merged)
    assert Settings.from_layers(json.loads(json.dumps(settings_to_json(found)))) == found


def test_a_missing_or_broken_settings_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    for content, message in (
        (None, "no such file"),
        ("{", "not valid Jsonnet"),
        ("[1, 2]", "Jsonnet object"),
        ("{ workrs: 2, 'dry-run': true }", "'dry_run' is an unknown setting"),
    ):
        if content is not None:
            (tmp_path / "bad.jsonnet").write_text(content)
        with pytest.raises(ConfigError, match=f"bad.jsonnet.* {message}"):
            settings_from_file(tmp_path / "bad.jsonnet", Settings)
    (tmp_path / "s.jsonnet").write_text("{ 'max-evaluations': 10 + 2, cuda_devices: [0, 1], seed: 5 }")
    read = settings_from_file(tmp_path / "s.jsonnet", Settings)
    assert read == {"max_evaluations": 12, "cuda_devices": "0,1", "seed": 5}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"splits": "paired"}, "--splits must be one of"),
        ({"split_ratios": [0.5, 0.3]}, "--split-ratios with --score test: .* 2 positive numbers"),
        ({"split_ratios": [0.5, "x", 0.1]}, '--split-ratios .* "x"'),
        ({"split_ratios": [0.5, 0.3, 0.2], "splits": "official"}, "--split-ratios applies only"),
        ({"group_by": "none", "splits": "official"}, "--group-by applies only"),
        ({"data": ["a", "b", "c", "d"]}, "--data takes at most 3 files"),
        ({"max_hours": 0}, "--max-hours must be above 0"),
        ({"workers": True}, "--workers must .*auto"),
        ({"seed": -1}, "--seed must be at least 0"),
        ({"top": 3}, "--top .*--study"),
        ({"study": "a.db", "points": "p.jsonl"}, "--points and --study"),
        ({"include_package": "mine"}, "--include-package must be a list"),
        ({"strategy": '{"type": "top_two", "confidence": 0.9}', "confidence": 0.8}, "--confidence 0.8 contradicts"),
        ({"strategy": "{beta: 1}"}, "not valid JSON"),
        ({"belief": "student"}, "--belief student.*'student_t'"),
        ({"belief": "dirichlet_f_measure"}, "--belief dirichlet_f_measure needs counts"),
        ({"strategy": {"type": "top_two", "belief": None}}, "--strategy: 'belief' must"),
        ({"strategy": "sequential_halving"}, "--strategy sequential_halving needs --budget N"),
    ],
)
def test_values_that_cannot_work_are_refused(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_strategy(Settings.from_layers(given), ["able", "blind"])


NAMED_PARTS = {"type": "bts", "belief": {"type": "x"}, "stop": {"type": "glr"}}


@pytest.mark.parametrize(
    ("layer", "params"),
    [
        ({"confidence": 0.9}, {"type": "top_two", "confidence": 0.9, "belief": {"type": "moderated_t"}}),
        ({"budget": 20}, {"type": "sequential_halving", "budget": 20, "belief": {"type": "moderated_t"}}),
        ({"strategy": {"type": "bts", "stop": "glr"}, "stop": "glr", "belief": "x"}, NAMED_PARTS),
        ({"strategy": {"type": "bts", "stop": "glr", "belief": "x"}}, NAMED_PARTS),
    ],
)
def test_options_become_the_strategys_config(layer: Dict[str, Any], params: Dict[str, Any]) -> None:
    assert Settings.from_layers(layer).strategy_params() == params


def test_what_decides_the_scores_must_not_change() -> None:
    """An option that is newer than the selection had its default there."""
    before = {"metric": "accuracy", "split_ratios": [0.64, 0.16, 0.2]}
    old = {name: value for name, value in settings_to_json(Settings.from_layers(before)).items() if name != "group_by"}
    assert changed_options(old, Settings.from_layers(before, {"workers": 8, "confidence": 0.99})) == []
    changes = {"metric": "f1", "split_ratios": (0.6, 0.2, 0.2), "group_by": "id"}
    assert changed_options(old, Settings.from_layers(before, changes)) == [
        '--metric was "accuracy" and is now "f1"',
        "--split-ratios was [0.64, 0.16, 0.2] and is now [0.6, 0.2, 0.2]",
        '--group-by was null and is now "id"',
    ]


def test_candidates_are_named_by_their_files_or_by_hand() -> None:
    specs = parse_candidates(("x/a.jsonnet", "other=y/a.jsonnet"))
    assert [(spec.name, spec.source) for spec in specs] == [("a", "x/a.jsonnet"), ("other", "y/a.jsonnet")]
    with pytest.raises(ConfigError, match="two candidates .*'a'"):
        load_candidates(Settings(candidates=("x/a.jsonnet", "y/a.jsonnet")))


def test_options_are_typed_and_typed_again() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    typed = ["--executor", "slurm", "--executor-option", "qos=long", "--executor-option", "exclude=a,b"]
    settings = Settings.from_layers(
        typed_options(parser.parse_args([*typed, "--split-ratios", "0.64,0.16,0.2"]), Settings)
    )
    assert settings.split_ratios == (0.64, 0.16, 0.2)
    expected = {"qos": "long", "exclude": "a,b"}
    assert settings.executor_options == expected
    assert Settings.from_layers(settings_to_json(settings)).executor_options == expected
    assert typed_options(parser.parse_args(["--seed", "5"]), Settings) == {"seed": 5}
    again = command_words(replace(settings, candidates=("a",)), positional="candidates")
    assert sorted(again) == sorted(["a", *typed, "--split-ratios", "0.64,0.16,0.2"])


def built_executor(root: Path, **layer: Any) -> Any:
    return build_executor(Settings.from_layers(layer), RunDirectory(root), packages=())


def test_options_of_an_executor_are_arguments_of_its_constructor(tmp_path: Path) -> None:
    built = built_executor(tmp_path, executor_option=["num_threads=3"], workers=2)
    assert (built.num_threads, built.slots) == (3, 2)


DRIVER = """#!/bin/sh
case "$1" in
    -L) printf 'GPU 0: A (UUID: GPU-aaaa-1)\\n  MIG 1g Device 0: (UUID: MIG-cccc)\\nGPU 1: B (UUID: GPU-bbbb-1)\\n' ;;
    *) printf 'A\\nB\\nC\\nD\\n' ;;
esac
"""
DEVICES = [
    (None, "4", None),
    ("2,3", "0,1", ["2", "3"]),
    ("2,3", "1,1", ["3", "3"]),
    ("-1", "0", None),
    ("1,-1,2", "0", ["1"]),
    ("GPU-aaaa, MIG-cccc", "1,0", ["MIG-cccc", "GPU-aaaa"]),
    (None, "MIG-cccc", ["MIG-cccc"]),
    ("GPU-bbbb", "GPU-bbbb", ["GPU-bbbb"]),
    ("GPU-bbbb", "GPU-aaaa", None),
    ("GPU-dddd", "0", None),
]


@pytest.mark.parametrize(("listed", "typed", "given"), DEVICES)
def test_devices_count_within_those_that_are_visible_or_have_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: Any, typed: str, given: Any
) -> None:
    (tmp_path / "nvidia-smi").write_text(DRIVER)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    with nullcontext() if given else pytest.raises(ConfigError, match="no GPU '.*' found"):
        assert built_executor(tmp_path, cuda_devices=typed)._devices == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor": "process"}, "--executor must .*'process'.*--include-package"),
        ({"executor_option": ["wrkers=2"]}, "--executor processes: .*wrkers"),
        ({"executor_option": ["workers=2"]}, "--executor-option workers=... has"),
        ({"executor_option": ["num_threads=many"]}, "num_threads must be"),
        ({"time_limit": -3}, "--time-limit must be above 0"),
        ({"cuda_devices": "gpu"}, "no GPU 'gpu' found"),
    ],
)
def test_executors_that_cannot_be_built_are_refused(tmp_path: Path, given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built_executor(tmp_path, **given)


@pytest.mark.parametrize(
    ("trainer", "needs_gpu"),
    [
        ({}, False),
        ({"cuda_device": -1}, False),
        ({"cuda_device": "cuda:0"}, True),
    ],
)
def test_a_gpu_that_a_config_names_must_be_seen(trainer: Dict[str, Any], needs_gpu: bool) -> None:
    configs = {name: Candidate(name, "", {"trainer": each}) for name, each in (("one", {}), ("two", trainer))}
    configs["three"] = Candidate("three", "", {"type": "program", "command": ["true"], "trainer": "cuda"})
    check_gpus(configs, Mock(hides_gpus=False))
    unseen = r"candidate 'two': .* --overrides '\{\"trainer.cuda_device\": -1\}'"
    with pytest.raises(ConfigError, match=unseen) if needs_gpu else nullcontext():
        check_gpus(configs, Mock(hides_gpus=True))
