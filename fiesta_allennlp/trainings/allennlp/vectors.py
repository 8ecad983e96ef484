"""Word-vector files cut down to the words of the pool, so that millions of rows are read once and not per training."""

import hashlib
import logging
import os
from collections import Counter
from pathlib import Path
from typing import AbstractSet, List, Mapping, Sequence

import numpy as np
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile
from filelock import FileLock

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.files import replacing

logger = logging.getLogger(__name__)


def filtered_vectors(uri: str, words: AbstractSet[str], directory: Path) -> Path:
    """The file in `directory` that holds the rows of `uri` whose word is in `words`; made if it is not there.

    Rows are copied as they are and in their order, so a model that reads this file in place of the original gets
    the same matrix, the random rows of words without a vector included: AllenNLP draws these from the mean and the
    standard deviation of the rows it found.

    Raises:
        DataError: where the file is missing or unreadable, or holds none of the words.
    """
    target = directory / f"{Path(uri).name.split('.')[0]}-{_key(uri, words)}.txt"
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(str(target) + ".lock"):
        if not target.exists():
            _copy_rows(uri, words, target)
    return target


def _copy_rows(uri: str, words: AbstractSet[str], target: Path) -> None:
    num_read = 0
    kept: List[str] = []
    try:
        with EmbeddingsTextFile(uri) as rows:
            for row in rows:
                num_read += 1
                if row.split(" ", 1)[0] in words:
                    kept.append(row if row.endswith("\n") else row + "\n")
    except StopIteration:
        raise DataError(f"{uri}: the file of word vectors is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{uri}: cannot be read as a file of word vectors: {error}") from error
    if not kept:
        raise DataError(
            f"{uri}: none of its {num_read} rows is for a word of the data. Is it a text file with one word and its "
            "numbers on each line, and do its words have the same case as the data?"
        )
    _check_rows(uri, kept)
    with replacing(target) as part:
        part.write_text("".join(kept), encoding="utf-8", newline="\n")
    logger.info("word vectors: kept %d of %d rows of %s in %s", len(kept), num_read, uri, target)


def _check_rows(uri: str, rows: Sequence[str]) -> None:
    """Refuse a row that lacks numbers or holds something else. One with more of them than usual is that of a word with
    a space in it, which AllenNLP passes over."""
    width = width_of(rows)
    for row in rows:
        word, *numbers = row.rstrip().split(" ")
        if len(numbers) < width:
            raise DataError(
                f"{uri}: the row of '{word}' has {len(numbers)} numbers but the others have {width}. Fix or delete it."
            )
        try:
            np.array(numbers[:width], dtype=np.float32)
        except ValueError as error:
            if len(numbers) == width:
                raise DataError(f"{uri}: in the row of '{word}', {error}. Fix or delete it.") from error


def rows_of(path: Path) -> List[str]:
    """The rows of a filtered file."""
    return path.read_text(encoding="utf-8").splitlines()


def coverage_of(rows: Sequence[str], counts: Mapping[str, int]) -> float:
    """The share of tokens that have one of these rows, where each word occurs as often as `counts` says; 1 where there
    are no tokens."""
    width = width_of(rows)
    words = {row.split(" ", 1)[0] for row in rows if row.rstrip().count(" ") == width}  # AllenNLP passes over others
    total = sum(counts.values())
    return sum(number for word, number in counts.items() if word in words) / total if total else 1.0


def width_of(rows: Sequence[str]) -> int:
    """The most common number of values in a row."""
    return Counter(row.rstrip().count(" ") for row in rows).most_common(1)[0][0]


def _key(uri: str, words: AbstractSet[str]) -> str:
    """Changes with the file (path, size, time of change) and with the words."""
    digest = hashlib.sha256(uri.encode("utf-8"))
    if os.path.exists(uri):
        status = os.stat(uri)
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    digest.update("\n".join(sorted(words)).encode("utf-8"))
    return digest.hexdigest()[:12]
