import pytest
import torch

from fiesta_allennlp.modules.unpacked_lstm import reverse


def test_reverse_leaves_the_padding_at_the_end():
    vectors = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [9.0, 9.0, 9.0]]).unsqueeze(-1)
    mask = torch.tensor([[True, True, True], [True, True, False], [False, False, False]])
    reversed_vectors = reverse(vectors, mask).squeeze(-1)
    assert reversed_vectors[mask].tolist() == [3.0, 2.0, 1.0, 5.0, 4.0]


@pytest.mark.parametrize("num_words", [0, 1])
def test_reverse_of_short_texts(num_words):
    vectors = torch.ones(2, num_words, 3)
    assert torch.equal(reverse(vectors, torch.ones(2, num_words, dtype=torch.bool)), vectors)
