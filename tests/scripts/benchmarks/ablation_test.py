from importlib import import_module


def test_the_recorded_results_are_those_of_the_present_rule() -> None:
    common = import_module("common")
    assert common.rule_id() == common.final_rule(), "measure again, then write the new id into final_rule.txt"


def test_every_number_is_part_of_the_id_of_the_rule() -> None:
    common = import_module("common")
    ends = list(map(common.ends_of, common.ID_SOURCES))
    for label, constant in import_module("ablation").CONSTANTS.items():
        with constant.set_to(constant.values[-1]):
            pairs = reversed(list(zip(common.ID_SOURCES, ends, strict=True)))  # the last ones are the cheapest
            assert any(common.ends_of(source) != end for source, end in pairs), label
    assert common.ends_of(common.ID_SOURCES[-1]) == ends[-1]
