from functools import cache
from importlib import import_module
from typing import Any


def test_the_recorded_results_are_those_of_the_present_rule() -> None:
    common = import_module("common")
    assert common.rule_id() == common.final_rule(), "measure again, then write the new id into final_rule.txt"


def test_every_number_is_part_of_the_id_of_the_rule() -> None:
    common, constants = import_module("common"), import_module("ablation").CONSTANTS

    @cache
    def ends(place: int, label: str = "") -> Any:
        if not label:
            return common.ends_of(common.ID_SOURCES[place])
        with constants[label].set_to(constants[label].values[-1]):
            return common.ends_of(common.ID_SOURCES[place])

    cheapest_first = list(reversed(range(len(common.ID_SOURCES))))
    for label in constants:
        assert any(ends(place, label) != ends(place) for place in cheapest_first), label
    assert common.ends_of(common.ID_SOURCES[-1]) == ends(cheapest_first[0]), "each number is as before again"
