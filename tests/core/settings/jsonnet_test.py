from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.settings.jsonnet import cached_evaluations, read_jsonnet


def test_a_template_at_many_points_together_is_what_it_is_at_each(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "one.libsonnet").write_text("{ one: 1 }")
    path = tmp_path / "t.jsonnet"
    path.write_text("""
        local n = std.parseJson(std.extVar('n'));
        (import 'one.libsonnet') { n: n, text: std.extVar('text'), home: std.extVar('PLACE'), here: std.thisFile }
        // the end""")
    monkeypatch.setenv("PLACE", "é")
    points = [{"n": str(n), "text": text} for n, text in enumerate(['"', "\\n", "😀", "%s"])]

    def read(point: Any, overrides: str = "") -> Any:
        return read_jsonnet(path, overrides=overrides, variables=point, label="t")

    alone = [read(point, "{ n: std.extVar('n') }") for point in points]
    with cached_evaluations([path, "{ n: std.extVar('n') }"], points):
        path.write_text("{}")  # is not read any more
        assert [read(point, "{ n: std.extVar('n') }") for point in points] == alone
        read(points[0])["n"] = 9
        assert read(points[0])["n"] == 0
        assert read({"n": "7", "text": ""}) == {}  # but for another point
    assert read(points[0]) == {}


def test_where_points_cannot_be_evaluated_together_each_is_alone(tmp_path: Path, monkeypatch: Any) -> None:
    """An imported file sees the variable of the environment, not that of the point."""
    (tmp_path / "imported.libsonnet").write_text("std.extVar('n')")
    path = tmp_path / "t.jsonnet"
    path.write_text("if std.extVar('n') == '3' then error 'three' else { n: import 'imported.libsonnet' }")
    monkeypatch.setenv("n", "environment")
    for number in (3, 4):  # without and with the point that fails by itself
        with cached_evaluations([path], [{"n": str(n)} for n in range(number)]):
            assert [read_jsonnet(path, variables={"n": str(n)}, label="t")["n"] for n in range(3)] == ["0", "1", "2"]
    with cached_evaluations([path], [{"n": "3"}]), pytest.raises(ConfigError, match="three"):
        read_jsonnet(path, variables={"n": "3"}, label="t")


CONFIG = '{"model": {"type": "a", "sizes": [1], "inner": {"x": 1}}, "trainer": {"optimizer": "adam"}}'


@pytest.mark.parametrize(
    ("overrides", "place", "value"),
    [
        ("{ model+: { inner+: { y: 2 } } }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("{ 'model.inner'+: { y: 2 }, model+: {} }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("local y = 2; { 'model.sizes'+: [y] }", "model", {"type": "a", "sizes": [1, 2], "inner": {"x": 1}}),
        ("{ model: { y: 1 + 1 } }", "model", {"y": 2}),
        ("{ trainer+: { lr: 2 }, 'trainer.optimizer'+: 'x' }", "trainer", {"optimizer": "x", "lr": 2}),
    ],
)
def test_overrides_with_a_plus_add_to_the_config(overrides: str, place: str, value: Any) -> None:
    assert read_jsonnet(CONFIG, overrides=overrides, label="t")[place] == value


def test_an_override_below_a_string_says_how_to_replace_it() -> None:
    message = "'trainer.optimizer' is \"adam\", not an object. Override it"
    with pytest.raises(ConfigError, match=message):
        read_jsonnet(CONFIG, overrides="{'trainer.optimizer.lr': 0.1}", label="t")
