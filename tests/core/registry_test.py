"""Only registered names are built, at every depth, and every wrong key or value is named."""

import sys
from abc import abstractmethod
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.sampling_rules import TopTwo
from fiesta_allennlp.core.errors import ConfigError, PackageError
from fiesta_allennlp.core.registry import Registrable, build, import_package, to_plain_data


class Engine(Registrable):
    default = "electric"


@Engine.register("electric")
class Electric(Engine):
    def __init__(self, *, power: float = 1.0) -> None:
        self.power = power


class Car(Registrable):
    def __init__(self, *, engine: Engine, seats: int = 4, names: Optional[List[str]] = None) -> None:
        self.engine, self.seats, self.names = engine, seats, names


@Car.register("van")
class Van(Car):
    def __init__(self, *, load: float, owner: str = "", doors: Optional[Dict[str, int]] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.load, self.owner, self.doors = load, owner, doors


@Engine.register("any")
class AnyEngine(Engine):
    def __init__(self, **options: Any) -> None:
        self.options = options


def test_nested_parts_are_built_and_arguments_go_up() -> None:
    given = {"type": "van", "load": 2, "engine": {"power": 3.5}, "seats": 2, "names": ["a"], "doors": {"left": 1}}
    van = build(Car, given, owner="me")
    assert isinstance(van, Van) and isinstance(van.engine, Electric)
    assert (van.load, van.engine.power, van.seats, van.owner) == (2, 3.5, 2, "me")
    assert (van.names, van.doors) == (["a"], {"left": 1})
    assert build(Car, {"type": "van", "load": 1, "engine": "electric", "names": None}).names is None


def test_extras_that_are_not_taken_are_left_out() -> None:
    assert build(Engine, {}, owner="me").power == 1.0
    assert vars(build(Engine, {"type": "any", "x": 1}, owner="me"))["options"] == {"x": 1, "owner": "me"}


VAN = {"type": "van", "load": 1, "engine": {}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"type": "vna"}, "mean 'van'"),
        ({"type": ["van"]}, "'type'"),
        ({"laod": 1}, "mean 'load'"),
        ({"load": True}, "load must .*number.* true"),
        ({"load": float("inf")}, "load must .*number.* Infinity"),
        ({"seats": 2.5}, "seats must .*whole number.* 2.5"),
        ({"names": "ab"}, 'names must .*list.* "ab"'),
        ({"names": [1]}, "names must .*string.* 1"),
        ({"doors": {"left": "x"}}, 'doors.left must .*whole number.* "x"'),
        ({"engine": {"type": "subprocess.Popen", "args": ["true"]}}, "'subprocess.Popen'"),
    ],
)
def test_what_is_wrong_is_named(change: Dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        build(Car, {**VAN, **change})
    with pytest.raises(ConfigError, match="'load'"):
        build(Car, {"type": "van", "engine": {}})


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConfigError, match="'electric' .*tests.core.registry_test.Electric"):
        Engine.register("electric")(Van)
    assert Engine.register("electric")(Electric) is Electric


def test_no_other_process_can_build_a_class_without_a_name() -> None:
    class Own(Engine):
        pass

    with pytest.raises(ConfigError, match="Own is not registered"):
        to_plain_data({"engine": Own()})


def test_a_class_without_its_base_or_its_methods_is_refused() -> None:
    class Shape(Registrable):
        @abstractmethod
        def area(self) -> float: ...

        @abstractmethod
        def name(self) -> str: ...

    class Square(Shape):
        def name(self) -> str:
            return "square"

    for wrong, message in ((Square, "Square must define area"), (Van, "Van must be a subclass of Shape")):
        with pytest.raises(ConfigError, match=f"^'wrong': {message}"):
            Shape.register("wrong")(wrong)
    assert Shape.available() == []


def test_a_package_is_imported_with_all_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    for place in ("outer/__init__", "outer/inner/__init__", "outer/inner/deep"):
        (tmp_path / f"{place}.py").write_text("")
    (tmp_path / "outer" / "broken.py").write_text("import no_such_module")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    for content, name, message in (
        ("import no_such_module.x", "outer", r"no_such_module' \(.*broken.py, line 1\).*`pip install no_such_module`"),
        ("import outer.gone", "outer", r"'outer.gone' \(.*broken.py, line 1\)\.$"),
        ("\nraise TypeError('no')", "outer", r"TypeError: no \(.*broken.py, line 2\)\.$"),
        ("", "outr", "'outr'. Run the command from the directory that contains it"),
        ("", "outer.gone", "'outer.gone'. Run the command from the directory that contains it"),
    ):
        (tmp_path / "outer" / "broken.py").write_text(content)
        sys.modules.pop("outer.broken", None)
        with pytest.raises(PackageError, match=f"--include-package {name} cannot be imported: .*{message}"):
            import_package(name)
    (tmp_path / "outer" / "broken.py").unlink()
    import_package("outer")
    assert "outer.inner.deep" in sys.modules and sys.path == before


def test_a_class_that_is_defined_again_replaces_itself() -> None:
    """As by a cell of a notebook that runs twice, and with a registered class as the base."""

    def cell() -> type:
        @TopTwo.register("of_a_cell")
        class OfACell(TopTwo):
            pass

        return OfACell

    try:
        cell()
        second = cell()
        assert Strategy.by_name("of_a_cell") is second
    finally:
        Registrable._registered[Strategy].pop("of_a_cell", None)
