from importlib import import_module

import numpy as np
import pytest


def test_an_end_is_where_a_rule_first_gives_up() -> None:
    giving_up, published = (import_module(name) for name in ("giving_up", "published_scores"))
    rng = np.random.default_rng(5)
    scores = rng.normal(0.5, 0.01, (2, 30))
    tied = published.Problem("s", "p", False, dict(zip("ab", scores - scores.mean(axis=1, keepdims=True), strict=True)))
    seeded = import_module("real_problems").SeededProblem(tied, 3)
    selections = giving_up.select_patiently([seeded], 4)
    for ends in selections:
        lengths = [ends[f"chance below {threshold:g}"].num_runs for threshold in giving_up.THRESHOLDS]
        assert lengths == sorted(lengths, reverse=True)
    table = {rule: cells for rule, *cells in giving_up.rows(selections)}
    patient, impatient = table["chance below 0.1"], table["chance below 0.5"]
    assert patient[-1] == "-" and float(impatient[0].split(",")[0]) < float(patient[0].split(",")[0])
    assert list(table)[-1] == "loss below 0.01 sd"


def test_the_price_of_a_winner_is_worked_by_hand() -> None:
    giving_up = import_module("giving_up")
    long, short = giving_up.End(90, True), giving_up.End(30, False)
    selections = [{rule: long for rule in giving_up.RULES}, {**{rule: short for rule in giving_up.RULES}}]
    selections[1][giving_up.RULES[0]] = long
    table = {row[0]: row for row in giving_up.rows(selections)}
    assert table["chance below 0.5"] == ("chance below 0.5", "60.0, 60", "0.500", "0.000", "60")


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("fiesta_allennlp.strategies.stopping_rules")
    for name in ("MIN_POWER", "MAX_RUNS_PER_WINNER"):
        monkeypatch.setattr(module, name, getattr(module, name))
