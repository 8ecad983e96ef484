import pytest
import torch
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder

from fiesta_allennlp.modules.unpacked_lstm import reverse


@pytest.mark.parametrize(
    ("kind", "options"), [(Seq2VecEncoder, {}), (Seq2SeqEncoder, {}), (Seq2SeqEncoder, {"bidirectional": True})]
)
def test_the_states_are_those_of_the_packed_lstm(kind, options):
    """Values and gradients, for texts of all lengths, one without words among them."""
    torch.manual_seed(3)
    unpacked, packed = (
        kind.by_name(name)(input_size=4, hidden_size=5, **options) for name in ("unpacked_lstm", "lstm")
    )
    ours = dict(unpacked._lstm.named_parameters())
    if options:
        from_right = unpacked._backward_lstm.named_parameters()
        ours.update({f"{name}_reverse": parameter for name, parameter in from_right})
    packed._module.load_state_dict(ours)
    mask = torch.arange(6) < torch.tensor([2, 0, 6, 1, 5]).unsqueeze(1)
    inputs = torch.randn(5, 6, 4)
    outputs, expected = unpacked(inputs, mask), packed(inputs, mask)
    torch.testing.assert_close(outputs, expected)
    assert (unpacked.get_input_dim(), unpacked.get_output_dim()) == (4, outputs.shape[-1])
    weights = torch.randn_like(outputs)
    for made in (outputs, expected):
        (made * weights).sum().backward()
    for name, theirs in packed._module.named_parameters():
        torch.testing.assert_close(ours[name].grad, theirs.grad)


def test_reverse_leaves_the_padding_at_the_end():
    vectors = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [9.0, 9.0, 9.0]]).unsqueeze(-1)
    mask = torch.tensor([[True, True, True], [True, True, False], [False, False, False]])
    assert reverse(vectors, mask).squeeze(-1)[mask].tolist() == [3.0, 2.0, 1.0, 5.0, 4.0]
    assert reverse(vectors[:, :0], mask[:, :0]).shape == (3, 0, 1)
