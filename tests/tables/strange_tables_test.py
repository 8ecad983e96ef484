"""Ten strange but honest tables, which are read, and ten that mix data, whose column the third line names."""

from itertools import product
from typing import Any, Dict, List

import pytest

from fiesta_allennlp import next_runs

Rows = List[Dict[str, Any]]


def splits_called(*names: str, column: str = "split") -> Rows:
    """Two candidates on the splits with these names."""
    pairs = product("ab", enumerate(names))
    return [{"candidate": name, column: split, "score": 0.5 + number / 100} for name, (number, split) in pairs]


def wide(*names: str) -> Rows:
    return [{"fold": fold, **{name: 0.5 + fold / 100 for name in names}} for fold in range(3)]


SHARED = "3 splits that all share"
WIDE: Dict[str, Any] = {"wide": "candidate", "columns": {"split": "fold"}}

HONEST = {
    "persons": (splits_called("Max", "Minh", "Alma"), {}, SHARED),
    "firms": (splits_called("Total", "Best", "Count"), {}, SHARED),
    "short names": (splits_called("sd", "all", "mean"), {}, SHARED),
    "places": (splits_called("Valencia", "Devon", "Test"), {}, SHARED),
    "chromosomes": (splits_called("x", "X", "Y"), {}, SHARED),
    "an ensemble": (wide("bert", "cnn", "average"), WIDE, SHARED),
    "a model called Total": (wide("Total", "None", "nan"), WIDE, SHARED),
    "states of a country": (
        [{**row, "state": "Ohio"} for row in splits_called("1", "2", "3")],
        {"columns": {"state": ""}},
        SHARED,
    ),
    "rounds of a cross-validation": (
        splits_called("1", "2", "3", column="round"),
        {"columns": {"split": "round"}},
        SHARED,
    ),
    "scores above 100": (
        {"a": [1203, 999, 1180], "b": [1150, 999, 1100]},
        {},
        "3 splits (positions in the lists) that",
    ),
}
"""The table, the options, and the beginning of the second line."""


@pytest.mark.parametrize("table", HONEST)
def test_a_strange_but_honest_table_is_read(table: str) -> None:
    content, options, line = HONEST[table]
    read_back = next_runs(content, **options).read_back
    assert set(read_back.runs.values()) == {3} and not read_back.varying
    assert len(read_back.lines) == 2 and read_back.lines[1].startswith(line)


def mixture(column: str, *kinds: Any, shared: bool = False) -> Rows:
    """Two candidates with two runs of each kind, which are seeds of one split, or with `shared` on splits of all."""
    keys = [("split", f"{kind}/{seed}") if shared else ("seed", f"{kind}{seed}") for kind in kinds for seed in range(2)]
    return [
        {"candidate": name, key: value, "score": 0.5 + number / 100, column: kinds[number // 2]}
        for name in "ab"
        for number, (key, value) in enumerate(keys)
    ]


MIXED = {
    "a data set by number": (
        mixture("dataset_id", 31, 37),
        "dataset_id = 31, 37 (all). To keep one: --where dataset_id=31",
    ),
    "a corpus by number": (mixture("corpus_id", 1, 2), "corpus_id = 1, 2 (all). To keep one: --where corpus_id=1"),
    "a collection": (mixture("collection", "trec8", "robust"), "collection = trec8, robust (all)"),
    "a treebank": (mixture("treebank", "UD_Latin-PROIEL", "UD_Gothic"), "treebank = UD_Latin-PROIEL, UD_Gothic (all)"),
    "an environment": (
        mixture("environment", "Ant-v4", "Hopper-v4", shared=True),
        "environment = Ant-v4, Hopper-v4 (all)",
    ),
    "a game": (mixture("game", "Pong", "Q*bert", "Breakout"), "game = Pong, Q*bert, Breakout (all)"),
    "data in German": (mixture("Datensatz", "Köln", "Wien"), "Datensatz = Köln, Wien (all). To keep one: --where"),
    "sizes of the training set": (mixture("size", 100, 1000), "size = 100, 1000 (all). To keep one: --where size=100"),
    "a learning rate of one candidate": (
        [{**row, "lr": 0.1 if row["candidate"] == "a" else row["lr"]} for row in mixture("lr", 0.1, 0.01)],
        "lr = 0.1, 0.01 (b). To keep one: --where lr=0.1",
    ),
    "a metric by another name": (mixture("criterion", "BLEU", "TER", shared=True), "criterion = BLEU, TER (all)"),
}
"""The table, and the third line after its first words."""


@pytest.mark.parametrize("table", MIXED)
def test_a_mixture_is_named_in_the_third_line_and_where_ends_it(table: str) -> None:
    rows, named = MIXED[table]
    read_back = next_runs(rows).read_back
    assert read_back.lines[2].startswith(f"differs within a candidate, not used: {named}")
    (varying,) = read_back.varying
    assert not next_runs(rows, where={varying.column: varying.values[0]}).read_back.varying


def test_a_row_without_a_score_does_not_differ() -> None:
    """A crashed run stopped at another epoch than those that finished."""
    rows: Rows = [
        {"candidate": name, "seed": seed, "score": score, "state": state, "epoch": epoch}
        for name in "ab"
        for seed, (score, state, epoch) in enumerate(
            [(0.5, "finished", 3), (0.6, "finished", 3), (0.1, "crashed", 0.4), (0.2, "running", 1)]
        )
    ]
    read_back = next_runs(rows).read_back
    assert read_back.varying == () and (read_back.num_failed, read_back.num_unfinished) == (2, 2)


def test_candidates_of_one_run_each_and_look_alikes_are_named_as_what_they_are() -> None:
    names = ["bright-sun-1", "Bert", "bert", "caf\u00e9", "cafe\u0301"]
    read_back = next_runs([{"candidate": name, "seed": 0, "score": 0.5} for name in names]).read_back
    first_line = read_back.lines[0]
    assert first_line.startswith("rows: 5 runs of 5 candidates of one run each (bright-sun-1, Bert, bert, caf")
    assert "; 'Bert' and 'bert' are 2 candidates; 'caf\\xe9' and 'cafe\\u0301' are 2 candidates" in first_line


def test_lines_are_short_whatever_the_cells_hold() -> None:
    rows: Rows = [
        {
            "candidate": f"{'x' * 300}\x1b{number % 50}",
            "seed": number,
            "score": number,
            "note": "y" * 300 + str(number % 3),
        }
        for number in range(300)
    ]
    lines = next_runs(rows).read_back.lines
    assert len(lines) == 3 and max(map(len, lines)) < 800 and "\x1b" not in "".join(lines)


def test_the_facts_are_plain_data() -> None:
    data = next_runs(mixture("lr", 0.1, 0.01), columns={"score": "+score"}).read_back.data
    assert (data["runs"], data["metric"], data["lowest"], data["highest"]) == ({"a": 4, "b": 4}, "score", 0.5, 0.53)
    lr = {"column": "lr", "values": ("0.1", "0.01"), "candidates": ("a", "b"), "share": 0.7, "num_elsewhere": 0}
    assert data["varying"] == (lr,)
    assert data["splits_from"] == "none" and not data["are_splits_assumed"]
