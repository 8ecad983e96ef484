import logging
from pathlib import Path

from fiesta_allennlp.selection.workspace import logging_to


def test_the_log_has_escapes_of_what_a_terminal_obeys(tmp_path: Path) -> None:
    with logging_to(tmp_path / "selection.log"):
        logging.getLogger("fiesta_allennlp").info("fail %s", "\x1b[2J\r\u202e")
    assert (tmp_path / "selection.log").read_text(encoding="utf-8").endswith(" INFO fail \\x1b[2J\\r\\u202e\n")
