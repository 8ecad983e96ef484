"""Numbers, facts and names as texts. The names of candidates and systems become parts of paths, cells and words."""

import csv
import math
import unicodedata
from typing import Dict, Iterable, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_SHOWN, ConfigError, escape_invisible, join_some
from fiesta_allennlp.core.files import shorten


def duration_text(seconds: float) -> str:
    """Format a duration in the two largest units of hours, minutes and seconds."""
    whole_seconds = round(seconds)
    hours, minutes = whole_seconds // 3600, whole_seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole_seconds % 60} s" if minutes else f"{seconds:.1f} s"


def count_text(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


SMALL, LARGE, HUGE = 1e-4, 1e7, 1e12
"""A number below the first or above the second is shown with significant digits instead of decimals."""


MIN_DECIMALS = 4


def number_text(value: Optional[float], digits: int = MIN_DECIMALS, *, sign: str = "") -> str:
    """Format a number with as many decimals, or `-` if there is none. With `sign` `+`, a positive one has its sign. A
    small or huge number has significant digits instead, and a large one up to 12."""
    if value is None:
        return "-"
    if abs(value) >= LARGE:
        return f"{value:{sign}.{12 if abs(value) < HUGE else 4}g}"
    if not 0 < abs(value) < SMALL:
        return f"{value:{sign}.{digits}f}"
    num_digits = max(digits + math.floor(math.log10(abs(value))) + 1, min(digits, MIN_DECIMALS))
    return f"{value:{sign}.{num_digits}g}"


def cost_text(value: Optional[float]) -> str:
    """Format a cost with two decimals, or a smaller one with two significant digits; `-` if it is unknown."""
    if value is None or not 0 < value < 0.1:
        return number_text(value, 2)
    return f"{value:.2g}"


def interval_text(interval: Optional[Tuple[float, float]], digits: int = MIN_DECIMALS) -> str:
    return "-" if interval is None else " to ".join(number_text(end, digits) for end in interval)


def probability_text(value: Optional[float]) -> str:
    """Format a probability with three decimals, but never as a rounded 0 or 1."""
    if value is None:
        return "-"
    return "> 0.999" if 0.9995 <= value < 1 else "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def names_text(names: Sequence[str]) -> str:
    """Return names as in `a, b and c`."""
    *first_names, last_name = names
    if not first_names or len(names) > MAX_SHOWN:
        return join_some(names)
    return f"{join_some(first_names)} and {join_some([last_name])}"


def chance_text(share: float) -> str:
    """Return a share of some 200 simulations with two decimals, but never as a rounded 0 or 1."""
    return "> 0.99" if share >= 0.995 else "< 0.01" if share < 0.005 else f"{share:.2f}"


FORBIDDEN_CHARACTERS = '\\:*?"<>|'
"""The characters that a file name cannot contain on every system, apart from the slash, which `file_name` escapes."""


def split_name(text: str) -> Tuple[Optional[str], str]:
    """Split `NAME=SOURCE`; a source alone has no name. Anything after a `?` belongs to the source."""
    if "=" not in text.partition("?")[0]:
        return None, text
    name, _, source = text.partition("=")
    return name, source


def split_names(text: str) -> Tuple[str, ...]:
    """Return names that are separated by commas. One that contains a comma is in double quotes."""
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))


def join_names(names: Iterable[str]) -> str:
    """Return the text that `split_names` splits into these names."""
    return ",".join(f'"{name}"' if set(name) & set(',"') else name for name in names)


def file_name(name: str) -> str:
    """Return the name of the file or directory of a candidate, such as `org%2Fmodel` for `org/model`."""
    return name.replace("%", "%25").replace("/", "%2F")


def check_names(named_sources: Iterable[Tuple[str, str]], *, noun: str, min_count: int, remedy: str) -> None:
    """Check the names of candidates or systems, each with its source. Messages call one of them `noun`. If there are
    fewer than `min_count`, the message ends with `remedy`."""
    source_by_name: Dict[str, str] = {}
    for name, source in named_sources:
        _check_name(name, f"{noun} '{escape_invisible(f'{name}={source}')}'")
        if name in source_by_name:
            sources = f"{source_by_name[name]} and {source}"
            raise ConfigError(f"two {noun}s are named '{name}': {sources}. Rename one: NAME={source}.")
        source_by_name[name] = source
    check_no_similar_names(source_by_name, noun=noun)
    if len(source_by_name) < min_count:
        names = join_some(source_by_name) or "none"
        raise ConfigError(f"a selection needs at least 2 {noun}s but got {len(source_by_name)}: {names}. {remedy}")


def comparison_key(name: str) -> str:
    """Return what is equal for names that look alike: they differ only in case, in blanks, in invisible characters or
    in how accents are encoded."""
    if not name.isascii():
        categories = ((character, unicodedata.category(character)) for character in unicodedata.normalize("NFC", name))
        name = "".join(" " if category == "Zs" else character for character, category in categories if category != "Cf")
    return " ".join(name.split()).casefold()


def check_no_similar_names(names: Iterable[str], *, noun: str) -> None:
    """Refuse names that look alike, because some systems give them one directory."""
    name_by_key: Dict[str, str] = {}
    for name in names:
        earlier = name_by_key.setdefault(comparison_key(name), name)
        if earlier != name:
            raise ConfigError(
                f"the names of the {noun}s '{escape_invisible(earlier)}' and '{escape_invisible(name)}' differ only in "
                "case, blanks or the encoding of accents. Rename one of them."
            )


MAX_NAME_BYTES = 110
"""The length of the longest name. The queue adds the number of the run and the name of its worker, within the 255 bytes
that file systems allow for the name of a file."""


def _check_name(name: str, subject: str) -> None:
    if len(file_name(name).encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise ConfigError(
            f"{shorten(subject)}: a name must not be longer than {MAX_NAME_BYTES} bytes, because files are named after "
            "it. Shorten it with NAME=PATH."
        )
    has_visible_text = escape_invisible(name) == name.strip() == name and name not in ("", ".", "..")
    if not has_visible_text or not set(name).isdisjoint(FORBIDDEN_CHARACTERS):
        raise ConfigError(
            f"{subject}: a name must not be empty, '.' or '..', or contain {' '.join(FORBIDDEN_CHARACTERS)}, invisible "
            "characters or outer spaces. Rename it with NAME=PATH."
        )
