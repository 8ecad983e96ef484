from draw_house import house, imports_between, rooms

from tests.conftest import REPOSITORY

PICTURE = REPOSITORY / "docs" / "pictures" / "house.svg"


def test_the_picture_for_contributors_has_the_rooms_and_imports_of_today() -> None:
    assert PICTURE.read_text(encoding="utf-8") == house(), "run: python scripts/draw_house.py docs/pictures/house.svg"


def test_rooms_and_their_imports_are_found() -> None:
    arrows = imports_between(rooms())
    assert {("commands", "reports"), ("selecting", "choosing"), ("choosing", "core")} <= arrows
    assert not any(source == "core" for source, _ in arrows)


def test_a_room_is_at_most_a_dozen_files_and_no_two_files_share_a_name() -> None:
    files = [file for room in rooms().values() for file in room if file.name != "__init__.py"]
    folders = [file.parent for file in files]
    assert {str(folder): folders.count(folder) for folder in folders if folders.count(folder) > 12} == {}
    names = [file.name for file in files]
    assert sorted({name for name in names if names.count(name) > 1}) == []
