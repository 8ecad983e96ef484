import pytest
import torch
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder


@pytest.mark.parametrize("kind", [Seq2VecEncoder, Seq2SeqEncoder])
def test_the_states_are_those_of_the_packed_lstm(kind):
    """Values and gradients, for texts of all lengths, one without words among them."""
    torch.manual_seed(3)
    unpacked, packed = (kind.by_name(name)(input_size=4, hidden_size=5) for name in ("unpacked_lstm", "lstm"))
    packed._module.load_state_dict(unpacked._lstm.state_dict())
    mask = torch.arange(6) < torch.tensor([2, 0, 6, 1, 5]).unsqueeze(1)
    inputs = torch.randn(5, 6, 4)
    outputs = unpacked(inputs, mask)
    torch.testing.assert_close(outputs, packed(inputs, mask))
    weights = torch.randn_like(outputs)
    (outputs * weights).sum().backward()
    (packed(inputs, mask) * weights).sum().backward()
    for ours, theirs in zip(unpacked._lstm.parameters(), packed._module.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("kind", [Seq2VecEncoder, Seq2SeqEncoder])
def test_widths(kind):
    encoder = kind.by_name("unpacked_lstm")(input_size=4, hidden_size=5)
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (4, 5)
