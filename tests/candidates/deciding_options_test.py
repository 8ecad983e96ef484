"""Every option of the choice goes through all ways to choose: a confidence, a budget, a preset, a plan, a
confirmation."""

from dataclasses import fields
from pathlib import Path
from typing import Any, Dict

import pytest

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.choosing.fixed_budget import FixedBudget
from fiesta_allennlp.choosing.strategy import build_strategy
from fiesta_allennlp.confirming.confirmation import ConfirmationPlan
from fiesta_allennlp.confirming.fresh_runs import FinishedSelection
from fiesta_allennlp.core.choice_settings import PRESETS, ChoiceSettings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.options import deciding_options, flag
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import Meta
from fiesta_allennlp.tables.simulation.planning import plan
from fiesta_allennlp.tables.table_settings import PlanSettings

NAMES = ["a", "b"]

VALUES: Dict[str, Any] = {
    "strategy": "non_adaptive_fc",
    "belief": "student_t",
    "confidence": 0.8,
    "stop": "bayesian",
    "margin": 0.01,
    "min_runs": 12,
    "max_evaluations": 30,
}
"""A value of each option that a selection for a confidence takes."""

OF_CONFIDENCE = deciding_options(ChoiceSettings, "confidence")


def test_every_option_of_the_choice_is_declared_as_one_that_decides() -> None:
    assert {*VALUES, "budget"} == {f.name for f in fields(ChoiceSettings)}
    assert {*deciding_options(ChoiceSettings, "confidence", "budget", "both")} == {*VALUES, "budget"}
    for settings_class in (Settings, PlanSettings):
        for kind in ("confidence", "budget", "both"):
            assert deciding_options(settings_class, kind) == deciding_options(ChoiceSettings, kind)


@pytest.mark.parametrize("name", VALUES)
def test_an_option_reaches_the_strategy_beside_a_preset(name: str) -> None:
    settings = Settings.from_layers({"preset": "paper", name: VALUES[name]})
    strategy = build_strategy(settings, NAMES)
    params = settings.strategy_params()
    value = params if name == "strategy" else params[name]
    assert (value["type"] if isinstance(value, dict) else value) == VALUES[name]
    assert strategy.confidence == (0.8 if name == "confidence" else 0.95)
    others = {other: given for other, given in PRESETS["paper"].items() if other != name}
    assert {other: getattr(settings, other) for other in others} == others


@pytest.mark.parametrize("name", VALUES)
def test_a_budget_takes_the_place_of_what_is_about_a_confidence_and_is_refused_beside_it(name: str) -> None:
    replaced = Settings.from_layers({name: VALUES[name]}, {"budget": 20, "strategy": None})
    assert isinstance(build_strategy(replaced, NAMES), FixedBudget)
    together = Settings.from_layers({name: VALUES[name], "budget": 20})
    if name in OF_CONFIDENCE:
        with pytest.raises(ConfigError, match=f"{flag(name)} cannot be combined with --budget"):
            build_strategy(together, NAMES)
    elif name == "strategy":
        with pytest.raises(ConfigError, match="--budget cannot be combined with --strategy non_adaptive_fc"):
            build_strategy(together, NAMES)
    else:
        assert build_strategy(together, NAMES).budget == 20


@pytest.mark.parametrize("name", VALUES)
def test_a_plan_takes_each_option_for_all_ways_to_choose(name: str) -> None:
    planned = plan(PlanSettings(gap=0.2, sd=0.01, repetitions=2, seed=1, **{name: VALUES[name]}))
    assert planned.default.runs.high <= 30 or name != "max_evaluations"


@pytest.mark.parametrize("name", [*VALUES, "budget"])
def test_a_confirmation_spends_its_own_budget_whatever_the_selection_chose_by(name: str, tmp_path: Path) -> None:
    candidates = {letter: Candidate(letter, f"echo {letter} {{seed}}", {}) for letter in NAMES}
    selection = FinishedSelection(
        directory=RunDirectory(tmp_path),
        meta=Meta(),
        settings=Settings.from_layers({name: VALUES.get(name, 40)}),
        candidates=candidates,
        result=Result("a", "confidence", "accuracy", ()),
    )
    fresh = ConfirmationPlan("a", (), 10, is_paired=False)
    settings = selection.settings_for(fresh, seed=7, resources={})
    assert build_strategy(settings, NAMES).budget == 10
    assert settings.strategy_params()["belief"] == {"type": VALUES["belief"] if name == "belief" else "moderated_t"}
