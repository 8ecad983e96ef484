import gzip
import tempfile
from pathlib import Path
from typing import Optional, Union

import numpy as np
import pytest
import torch
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import Embedding
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.candidates.allennlp.preparing import coverage_of, filtered_vectors
from fiesta_allennlp.core.errors import DataError

ROWS = "the 0.1 0.2\nfood 0.3 0.4\nbroken 1 2 3\nservice 0.5 0.6\nfood 0.7 0.8\n"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "glove.2d.txt.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.write(ROWS)
    return path


def test_rows_of_the_words_are_kept_as_they_are_and_in_order(vectors: Path, tmp_path: Path) -> None:
    """Coverage counts tokens and not types."""
    counts = {"food": 6, "broken": 1, "unheard": 3}
    made = filtered_vectors(str(vectors), set(counts), tmp_path / "run")
    assert made.read_text() == "food 0.3 0.4\nbroken 1 2 3\nfood 0.7 0.8\n"
    rows = made.read_text().splitlines()
    assert coverage_of(rows, counts) == pytest.approx(0.6)  # the row of `broken` has a number too many
    assert coverage_of(rows, {}) == 1.0
    (tmp_path / "v.txt").write_text("2 2\nthe 0.1 0.2\nfood 0.3 0.4\n")  # with a header
    assert filtered_vectors(str(tmp_path / "v.txt"), {"food", "2"}, tmp_path / "run").read_text() == "food 0.3 0.4\n"


def test_a_model_gets_the_same_matrix(vectors: Path, tmp_path: Path) -> None:
    """Also for the words without a vector, whose random rows depend on the mean and sd of the rows that are found."""
    vocab = Vocabulary(tokens_to_add={"tokens": ["food", "unheard", "service", "also unheard"]})
    made = filtered_vectors(str(vectors), {"food", "unheard", "service", "the", "also unheard"}, tmp_path / "run")
    matrices = []
    for file in (vectors, made):
        torch.manual_seed(5)
        matrices.append(Embedding(embedding_dim=2, pretrained_file=str(file), vocab=vocab).weight.detach().numpy())
    assert np.array_equal(matrices[0], matrices[1])
    assert matrices[0][vocab.get_token_index("food")] == pytest.approx([0.7, 0.8])


def test_the_original_is_read_once_for_the_same_words(vectors: Path, tmp_path: Path) -> None:
    first = filtered_vectors(str(vectors), {"food"}, tmp_path / "run")
    first.write_text("marked")
    assert filtered_vectors(str(vectors), {"food"}, tmp_path / "run").read_text() == "marked"
    assert filtered_vectors(str(vectors), {"food", "the"}, tmp_path / "run") != first
    with gzip.open(vectors, "wt") as out:
        out.write(ROWS * 2)
    assert filtered_vectors(str(vectors), {"food"}, tmp_path / "run") != first


@settings(max_examples=60, deadline=None)
@given(content=some.one_of(some.binary(max_size=60), some.text(alphabet="the food 0.1\n\t-ex", max_size=60)))
def test_any_file_gives_rows_or_an_error_with_its_name(content: Union[bytes, str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "v.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            made = filtered_vectors(str(path), {"the", "food", "f"}, Path(scratch) / "run")
        except DataError as error:
            message = str(error)
        else:
            assert coverage_of(made.read_text().splitlines(), {}) == 1
            return
        assert str(path) in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"Food 1 2\n", "none of its 1 words"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-12], "cannot be read"),
        (None, "cannot be read"),
    ],
    ids=repr,
)
def test_a_useless_file_is_refused_with_its_name(tmp_path: Path, content: Optional[bytes], message: str) -> None:
    path = tmp_path / ("v.txt.gz" if content and content[:2] == b"\x1f\x8b" else "v.txt")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"v.txt.*{message}"):
        filtered_vectors(str(path), {"the", "food"}, tmp_path / "run")
    assert not list((tmp_path / "run").glob("*.txt"))
