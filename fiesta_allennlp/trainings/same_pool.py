"""Whether all candidates have the same pool, so that equal splits are of equal items."""

from typing import Any, Mapping, Optional

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.trainings.pool import Pool


def check_same_pool(pools: Mapping[str, Pool]) -> None:
    """Refuse candidates that would be scored on different data.

    Args:
        pools: those of the candidates, by name.

    Raises:
        ConfigError: naming the first candidate whose pool differs from that of the first one, and how.
    """
    (first_name, first), *others = pools.items()
    for name, other in others:
        told = _difference(first, other)
        if told is not None:
            raise ConfigError(
                f"candidates '{first_name}' and '{name}' do not have the same pool of data, so their scores cannot "
                f"be compared: {told}"
            )


def _difference(first: Pool, other: Pool) -> Optional[str]:
    """What two pools do not have in common, and the remedy; None where they are the same.

    What the config's reader makes of an item is known only to that reader, so an AllenNLP config and a program have the
    same items where groups and labels of one are at the same positions as those of the other.
    """
    if not (first.official and other.official) and first.official != other.official:
        return f"one of them has no data of the selection, because its program cuts its own sets. {_GIVE_DATA}"
    for what, words in _WORDS.items():
        mine, theirs = getattr(first, what), getattr(other, what)
        if mine != theirs:
            return f"{words} {_told(mine)} in one and {_told(theirs)} in the other. {_REMEDIES.get(what, _SAME_DATA)}"
    if first.is_of_program != other.is_of_program:
        return _UNPAIRED if set(first.pairing).isdisjoint(other.pairing) else None
    if first.fingerprint != other.fingerprint:
        return f"{_OTHER_ITEMS} {first.fingerprint} and {other.fingerprint}. {_SAME_DATA}"
    return None


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{part} {size}" for part, size in value.items())
    return "nothing" if value is None else str(value)


_WORDS = {
    "official": "the instances read are",
    "group_by": "the splits would keep whole",
    "num_groups": "the numbers of groups are",
    "data": "the contents of the data files differ, with fingerprints",
}

_SAME_DATA = "Give both the same data files, and readers that make the same instances of them."
_REMEDIES = {"group_by": "Say it for all of them with --group-by."}
_OTHER_ITEMS = "the groups or labels of the instances differ, with fingerprints"
_GIVE_DATA = "Give it 'data', so that the selection cuts the sets of all candidates."
_UNPAIRED = (
    "instance i of the config's reader is not item i of the program's file, because their groups or labels are not "
    "equal at equal positions. Have the reader give one instance for each item in the order of the file, with a label "
    "that stands in a field of its own in the file."
)
