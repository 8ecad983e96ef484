"""Patterns of paths and of texts, such as `results/{candidate}/seed{seed}/x.json`: what stands at their names, and
which pattern some texts may have."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import DefaultDict, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import DataError

PATTERN_PIECE = re.compile(r"\{([^{}]+)\}|(\*\*/)|(\*)")


def is_pattern(path: str) -> bool:
    return PATTERN_PIECE.search(path) is not None and not Path(path).exists()


def match_pattern(pattern: str, text: str, character: str = ".") -> Optional[Dict[str, str]]:
    """Return what stands at the names of a pattern, None if the text does not match. `{name}` is one or more of the
    characters, `*` none or more, and `**/` any folders. Refuse a text that matches in two ways."""
    greedy, lazy = (regex.fullmatch(text) for regex in _compile_pattern(pattern, character))
    if greedy is None or lazy is None:
        return None
    names = dict.fromkeys(name for name, _, _ in PATTERN_PIECE.findall(pattern) if name)
    parts, other_parts = (dict(zip(names, match.groups(), strict=True)) for match in (greedy, lazy))
    if parts != other_parts:
        raise DataError(
            f"'{text}' matches {pattern} in two ways: {_shown_parts(parts)}; or {_shown_parts(other_parts)}. Add more "
            "of the text between the names."
        )
    return parts


def _shown_parts(parts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {part}" for name, part in parts.items())


@cache
def _compile_pattern(pattern: str, character: str) -> Tuple["re.Pattern[str]", "re.Pattern[str]"]:
    """Return the expressions of a pattern that take as much, and as little, as they can for each name in turn."""
    regexes = []
    for mode in ("", "?"):
        names: List[str] = []
        pieces: List[str] = []
        end = 0
        for match in PATTERN_PIECE.finditer(pattern):
            pieces.append(re.escape(pattern[end : match.start()]))
            end = match.end()
            if match[1] in names:
                pieces.append(f"(?:\\{names.index(match[1]) + 1})")
            elif match[1]:
                names.append(match[1])
                pieces.append(f"({character}+{mode})")
            else:
                pieces.append(f"(?:[^/]+/)*{mode}" if match[2] else f"{character}*{mode}")
        regexes.append(re.compile("".join(pieces) + re.escape(pattern[end:]), re.DOTALL))
    return regexes[0], regexes[1]


def propose_pattern(paths: Sequence[str]) -> str:
    """Return a pattern of these paths, in which folders that differ are the candidate or, by their number, the seed;
    empty if there is none."""
    parts = [path.split("/") for path in paths]
    if len({len(each) for each in parts}) > 1:
        return ""
    pattern: List[str] = []
    for names in zip(*parts, strict=True):
        matches = [re.fullmatch(r"(.*?)([\W_]?[^\W\d_]*)(\d+)", name) for name in names]
        stems = {match and match[1] for match in matches}
        ends = {match and match[2] for match in matches}
        is_numbered = None not in matches and len(ends) == 1 and len(stems) < len(set(names))
        if len(set(names)) == 1:
            pattern.append(names[0])
        elif is_numbered:
            pattern.append(f"{(stems.pop() or '') if len(stems) == 1 else '{candidate}'}{ends.pop()}{{seed}}")
        else:
            pattern.append("{candidate}" if "{candidate}" not in pattern else "{split}")
    text = "/".join(pattern)
    return text if "{candidate}" in text else ""


def find_patterns(columns: Sequence[str]) -> List[str]:
    """Return the patterns of columns that differ only before ` - `, or in a number."""
    texts: DefaultDict[str, Set[str]] = defaultdict(set)
    for column in columns:
        name, dash, metric = column.rpartition(" - ")
        for match in () if dash else re.finditer(r"\d+", column):
            part = "seed" if re.search(r"(?i)seed|run", column[: match.start()]) else "split"
            texts[f"{column[: match.start()]}{{{part}}}{column[match.end() :]}"].add(column)
        if dash:
            texts[f"{{candidate}} - {metric}"].add(name)
    return sorted((pattern for pattern, same in texts.items() if len(same) > 1), key=len)
