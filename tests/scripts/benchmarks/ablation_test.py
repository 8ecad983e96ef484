from importlib import import_module
from typing import Any, List


def ends_of_the_default() -> List[Any]:
    common = import_module("common")
    return [common.ends_of(source) for source in common.ID_SOURCES]


def test_the_recorded_results_are_those_of_the_present_rule() -> None:
    common = import_module("common")
    assert common.rule_id() == common.final_rule(), "measure again, then write the new id into final_rule.txt"


def test_every_number_is_part_of_the_id_of_the_rule() -> None:
    ends = ends_of_the_default()
    for label, constant in import_module("ablation").CONSTANTS.items():
        with constant.set_to(constant.values[-1]):
            assert ends_of_the_default() != ends, label
    assert ends_of_the_default() == ends
