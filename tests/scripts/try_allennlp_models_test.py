import json
from importlib import import_module
from pathlib import Path


def test_every_change_is_used_and_there() -> None:
    script = import_module("try_allennlp_models")
    assert {case.change for case in script.CASES} == set(script.CHANGES)


def test_data_are_repeated_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    repeat = import_module("try_allennlp_models").repeat
    (tmp_path / "lines.tsv").write_text("a\tb\nc\td\n")
    repeat(tmp_path / "lines.tsv", tmp_path / "twice.tsv", 2)
    assert (tmp_path / "twice.tsv").read_text() == "a\tb\nc\td\na\tb\nc\td\n"
    (tmp_path / "blocks.conllu").write_text("a O\nb O\n\nc O\n")
    repeat(tmp_path / "blocks.conllu", tmp_path / "twice.conllu", 2)
    assert (tmp_path / "twice.conllu").read_text() == "a O\nb O\n\nc O\n\na O\nb O\n\nc O\n\n"
    (tmp_path / "squad.json").write_text(json.dumps({"version": 2, "data": [1]}))
    repeat(tmp_path / "squad.json", tmp_path / "twice.json", 2)
    assert json.loads((tmp_path / "twice.json").read_text()) == {"version": 2, "data": [1, 1]}
    (tmp_path / "drop.json").write_text(json.dumps({"nfl": [1]}))
    repeat(tmp_path / "drop.json", tmp_path / "twice.json", 2)
    assert json.loads((tmp_path / "twice.json").read_text()) == {"nfl-0": [1], "nfl-1": [1]}
    (tmp_path / "piqa.jsonl").write_text("{}\n")
    (tmp_path / "piqa-labels.lst").write_text("1\n")
    repeat(tmp_path / "piqa.jsonl", tmp_path / "train.jsonl", 3)
    assert (tmp_path / "train-labels.lst").read_text() == "1\n1\n1\n"


def test_a_folder_is_repeated_file_by_file(tmp_path: Path) -> None:
    repeat = import_module("try_allennlp_models").repeat
    (tmp_path / "srl" / "part").mkdir(parents=True)
    (tmp_path / "srl" / "part" / "a.gold_conll").write_text("x\n")
    (tmp_path / "srl" / "experiment.json").write_text("{}")
    repeat(tmp_path / "srl", tmp_path / "train", 2)
    assert [path.name for path in (tmp_path / "train").rglob("*.*")] == ["a.gold_conll"]
    assert (tmp_path / "train" / "part" / "a.gold_conll").read_text() == "x\nx\n"
