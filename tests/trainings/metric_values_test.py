from typing import Any, Optional

import numpy as np
import pytest
import torch

from fiesta_allennlp.trainings.allennlp.evaluator import as_plain, number_of


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 0.5),
        (2, 2.0),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int64(2), 2.0),
        (np.array(0.5), 0.5),
        (torch.tensor(0.5), 0.5),
        (torch.tensor(0.5, dtype=torch.float16, requires_grad=True), 0.5),
        (torch.tensor([0.5, 1]), None),
        (np.array([0.5]), None),
        ("0.5", None),
        (True, None),
        (np.True_, None),
        (torch.tensor(True), None),
        (1j, None),
        (None, None),
        ([0.5], None),
    ],
    ids=repr,
)
def test_what_is_a_number(value: Any, number: Optional[float]) -> None:
    assert number_of(value) == number
    plain = as_plain({"a": value})["a"]
    assert plain is value if number is None or isinstance(value, int) else type(plain) is float
