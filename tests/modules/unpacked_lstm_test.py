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


def test_two_directions_are_those_of_the_packed_lstm():
    torch.manual_seed(3)
    unpacked = Seq2SeqEncoder.by_name("unpacked_lstm")(input_size=4, hidden_size=5, bidirectional=True)
    packed = Seq2SeqEncoder.by_name("lstm")(input_size=4, hidden_size=5, bidirectional=True)
    from_right = {f"{name}_reverse": weights for name, weights in unpacked._backward_lstm.state_dict().items()}
    packed._module.load_state_dict({**unpacked._lstm.state_dict(), **from_right})
    mask = torch.arange(6) < torch.tensor([2, 6, 1, 5]).unsqueeze(1)
    inputs = torch.randn(4, 6, 4)
    outputs, expected = unpacked(inputs, mask), packed(inputs, mask)
    torch.testing.assert_close(outputs, expected)
    assert (unpacked.get_output_dim(), unpacked.is_bidirectional()) == (10, True)
    weights = torch.randn_like(outputs)
    (outputs * weights).sum().backward()
    (expected * weights).sum().backward()
    theirs = dict(packed._module.named_parameters())
    for name, parameter in unpacked._lstm.named_parameters():
        torch.testing.assert_close(parameter.grad, theirs[name].grad)
    for name, parameter in unpacked._backward_lstm.named_parameters():
        torch.testing.assert_close(parameter.grad, theirs[f"{name}_reverse"].grad)
