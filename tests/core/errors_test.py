import pickle

from fiesta_allennlp.core.errors import (
    MAX_ERROR_CHARACTERS,
    ConfigError,
    DataError,
    combined_error,
    describe,
    describe_as_sentence,
    did_you_mean,
    escape_invisible,
    near_names,
)


def test_candidates_of_one_reason_share_a_line() -> None:
    one = combined_error({"a.json": "no: data"}, noun="invalid")
    assert isinstance(one, ConfigError) and str(pickle.loads(pickle.dumps(one))) == "a.json: no: data"
    reasons = {"a": "x", "b: c": "y", "d": "x"}
    assert str(combined_error(reasons, noun="f")) == "3 f:\n  a, d: x\n  b: c: y"
    many = {f"c{number}": str(number // 20) for number in range(200)}
    header, *lines, last = str(combined_error(many, noun="invalid")).split("\n  ")
    assert (header, last, len(lines)) == ("200 invalid:", "and 2 more", 8)
    assert lines[0] == "c0, c1, c2, c3, c4, c5, c6, c7, and 12 more: 0"


def test_any_other_error_keeps_its_words() -> None:
    assert describe_as_sentence(DataError("x.xml, line 3: wrong.")) == "x.xml, line 3: wrong."
    assert describe_as_sentence(KeyError("label")) == "KeyError: 'label'."


def test_a_traceback_in_the_message_of_another_package_is_left_out() -> None:
    said = "worker raised ValueError('no')\n\n  Traceback from worker:\n  File ..."
    assert describe(RuntimeError(said)) == "RuntimeError: worker raised ValueError('no')"
    output = "Last output: Traceback (most recent call last): / ValueError: no"
    assert describe(DataError(output)) == output
    assert len(describe(ValueError("x" * 10**6))) < MAX_ERROR_CHARACTERS + 30


def test_invisible_characters_are_written_as_escapes() -> None:
    assert escape_invisible("a\x1b[2J\r\x9b\u202e\u2028\ud800\ufeff") == r"a\x1b[2J\r\x9b\u202e\u2028\ud800\ufeff"
    assert escape_invisible("a\n\tb", keep="\n") == "a\n\\tb"
    assert escape_invisible("ünï 模型 ☃ \u00a0 e\u0301 \\") == "ünï 模型 ☃ \u00a0 e\u0301 \\"
    assert describe(DataError("no\x1b]0;T\x07\n\0 room")) == r"no\x1b]0;T\x07 \x00 room"


def test_names_are_near_in_any_case() -> None:
    assert did_you_mean("F1", ["f1", "loss"]) == " Did you mean 'f1'?"
    assert near_names("EM", ["em", "Em", "f1"], max_names=3) == ["em", "Em"]
    assert near_names("x" * 1000, ["x" * 999]) == []
