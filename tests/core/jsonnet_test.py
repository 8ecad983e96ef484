from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.jsonnet import read_jsonnet


def test_a_template_reads_its_point_before_the_environment(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "one.libsonnet").write_text("{ one: std.extVar('n') }")
    path = tmp_path / "t.jsonnet"
    path.write_text("(import 'one.libsonnet') { text: std.extVar('text'), home: std.extVar('PLACE') }")
    monkeypatch.setenv("PLACE", "é")
    monkeypatch.setenv("n", "environment")
    for number, text in enumerate(['"', "\\n", "😀", "%s"]):
        point = {"n": str(number), "text": text}
        assert read_jsonnet(path, variables=point, label="t") == {"one": str(number), "text": text, "home": "é"}
    path.write_text("if std.extVar('n') == '3' then error 'three' else 1")
    with pytest.raises(ConfigError, match="three"):
        read_jsonnet(path, variables={"n": "3"}, label="t")


CONFIG = '{"model": {"type": "a", "sizes": [1], "inner": {"x": 1}}, "trainer": {"optimizer": "adam"}}'


@pytest.mark.parametrize(
    ("overrides", "place", "value"),
    [
        ("{ model+: { inner+: { y: 2 } } }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("{ 'model.inner'+: { y: 2 }, model+: {} }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("local y = 2; { 'model.sizes'+: [y] }", "model", {"type": "a", "sizes": [1, 2], "inner": {"x": 1}}),
        ("{ trainer+: { lr: 2 }, 'trainer.optimizer'+: 'x' }", "trainer", {"optimizer": "x", "lr": 2}),
    ],
)
def test_overrides_with_a_plus_add_to_the_config(overrides: str, place: str, value: Any) -> None:
    assert read_jsonnet(CONFIG, overrides=overrides, label="t")[place] == value


def test_an_override_below_a_string_says_how_to_replace_it() -> None:
    message = "'trainer.optimizer' is \"adam\", not an object. Override it"
    with pytest.raises(ConfigError, match=message):
        read_jsonnet(CONFIG, overrides="{'trainer.optimizer.lr': 0.1}", label="t")
