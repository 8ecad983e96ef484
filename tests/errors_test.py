import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.errors import ConfigError, DataError, describe, not_keys, plainly, visible
from fiesta_allennlp.registry import build
from fiesta_allennlp.strategies import Strategy


def test_an_unknown_name_is_told_with_its_key_and_the_near_one() -> None:
    with pytest.raises(ConfigError) as raised:
        build(Strategy, {"type": "tts"})
    told = str(raised.value)
    assert told.startswith(
        "'type' is 'tts', but no class is registered under that name. Did you mean 'ttts'? Valid names: bts, "
    )
    assert told.endswith("A class of your own needs --include-package.")


def test_of_many_names_only_the_near_one_is_told() -> None:
    names = [f"name_{number}" for number in range(40)]
    told = plainly(ConfigurationError(f"nmae_7 not in acceptable choices for model.type: {names}. You should ..."))
    assert told == (
        "'model.type' is 'nmae_7', but no class is registered under that name. Did you mean 'name_7'? A class of your "
        "own needs --include-package."
    )


def test_unknown_keys_are_told_with_their_owner() -> None:
    class Owner:
        def __init__(self, size: int) -> None:
            pass

    with pytest.raises(TypeError) as raised:
        Owner(colour="red")  # type: ignore[call-arg]
    assert plainly(raised.value) == "'colour' is not a key of Owner. Correct its name, or remove it."
    with pytest.raises(ConfigurationError) as extra:
        Params({"colour": "red"}).assert_empty("Owner")
    assert plainly(extra.value) == "'colour' is not a key of Owner. Correct its name, or remove it."


def test_each_of_several_unknown_keys_has_its_own_sentence() -> None:
    assert not_keys(["patiense", "colour"], "'trainer'", ["patience", "num_epochs"]) == (
        "'patiense' is not a key of 'trainer'. Did you mean 'patience'? "
        "'colour' is not a key of 'trainer'. Correct its name, or remove it."
    )


def test_what_no_file_or_variable_can_hold_is_escaped() -> None:
    assert describe(ValueError("a\0b\udcff")) == r"ValueError: a\x00b\udcff"


def test_any_other_error_keeps_its_words() -> None:
    assert plainly(DataError("x.xml, line 3: wrong.")) == "x.xml, line 3: wrong."
    assert plainly(KeyError("label")) == "KeyError: 'label'."


def test_an_argument_that_is_no_key_of_the_config_is_told_as_one_of_the_code() -> None:
    class Scheduler:
        def __init__(self, patience: int) -> None:
            pass

    with pytest.raises(TypeError) as raised:
        Scheduler(patience=1, verbose=True)  # type: ignore[call-arg]
    assert plainly(raised.value, keys={"patience", "verbose"}).startswith("'verbose' is not a key of Scheduler.")
    told = plainly(raised.value, keys={"patience"})
    assert (
        "got an unexpected keyword argument 'verbose'. 'verbose' is not in the config, so the code that passes it "
        in told
    )


def test_a_spacy_model_that_cannot_be_fetched_is_told_with_the_line_to_type() -> None:
    error = ConnectionError("Max retries exceeded with url: /explosion/spacy-models/master/compatibility.json (...)")
    assert plainly(error).startswith("a tokenizer needs a spaCy model that is not installed")
    assert "`python -m spacy download en_core_web_sm`" in plainly(error)


def test_invisible_characters_are_written_as_escapes() -> None:
    assert visible("a\x1b[2J\r\x9b\u202e\u2028\ud800\ufeff") == r"a\x1b[2J\r\x9b\u202e\u2028\ud800\ufeff"
    assert visible("a\n\tb", keep="\n") == "a\n\\tb"
    assert visible("ünï 模型 ☃ \u00a0 e\u0301 \\") == "ünï 模型 ☃ \u00a0 e\u0301 \\"
    assert describe(DataError("no\x1b]0;T\x07\n\0 room")) == r"no\x1b]0;T\x07 \x00 room"
