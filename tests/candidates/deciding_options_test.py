"""Every option of the choice is declared, and goes with a budget, gives way to it, or is refused beside it."""

from dataclasses import fields
from typing import Any, Dict

import pytest

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.choosing.fixed_budget import FixedBudget
from fiesta_allennlp.choosing.strategy import build_strategy
from fiesta_allennlp.core.choice_settings import ChoiceSettings
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.options import deciding_options, flag
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
