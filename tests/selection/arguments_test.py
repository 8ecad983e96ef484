import pytest

from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.selection.arguments import as_arguments, told_as_arguments
from fiesta_allennlp.trainings.settings import Settings


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("or give --splits official, where", 'or give splits="official", where'),
        ("--splits must be one of", "splits must be one of"),
        ("Choose with --metric, as --metric=-NAME where", 'Choose with metric, as metric="-NAME" where'),
        ("--metric 3 or --group-by KEY.", "metric=3 or group_by=KEY."),
        ("give another, or `--group-by none`.", 'give another, or `group_by="none"`.'),
        ("the sizes: --split-ratios 0.8,0.2 for", "the sizes: split_ratios=[0.8, 0.2] for"),
        ("--confidence and --budget are", "confidence and budget are"),
        ("give --margin 0.004.", "give margin=0.004."),
        ("--seed 7 repeats it", "seed=7 repeats it"),
        ("Go on with --recover, or with -s.", "Go on with recover=True, or with directory."),
        ("Type: pip install --no-deps allennlp", "Type: pip install --no-deps allennlp"),
        ("a-s and x--splits", "a-s and x--splits"),
    ],
)
def test_options_are_told_as_arguments(typed: str, called: str) -> None:
    assert as_arguments(typed, Settings, switches=("recover",)) == called


def test_a_switch_is_told_with_its_value() -> None:
    said = "Let scores be drawn again with --with-replacement, or stop; see --no-with-replacement too."
    assert as_arguments(said, ReplaySettings) == (
        "Let scores be drawn again with with_replacement=True, or stop; see with_replacement=False too."
    )


def test_an_error_keeps_its_type_and_other_errors_their_words() -> None:
    with pytest.raises(StoreError, match="^use recover=True$"), told_as_arguments(Settings, switches=("recover",)):
        raise StoreError("use --recover")
    with pytest.raises(ConfigError, match="^--recover$"), told_as_arguments(Settings):
        raise ConfigError("--recover")
    with pytest.raises(ValueError, match="^--splits$"), told_as_arguments(Settings):
        raise ValueError("--splits")
