import math

import pytest
import torch


def test_target_matters(workbench):
    logits = workbench.logits(workbench.model("atae_lstm"), *workbench.instances[:2])
    assert not torch.allclose(logits[0], logits[1])


def test_attention_by_hand(workbench):
    """Equations 7 and 8 with W_h = W_v = I and w that reads the first entry of each half of M."""
    model = workbench.model("atae_lstm")
    weights = {
        "_hidden_projection": torch.eye(3),
        "_target_projection": torch.eye(4),
        "_attention": torch.tensor([[2.0, 0, 0, 1.0, 0, 0, 0]]),
    }
    for name, weight in weights.items():
        getattr(model, name).weight.data = weight
    hidden = torch.tensor([[[0.5, 7, 7], [-0.5, 7, 7], [9.0, 9, 9]]])
    mask = torch.tensor([[True, True, False]])
    alpha = model.attention(hidden, torch.tensor([[0.3, 0, 0, 0]]), mask)[0]
    # The target adds tanh(0.3) to both scores, and so nothing to the softmax.
    first, second = math.exp(2 * math.tanh(0.5)), math.exp(2 * math.tanh(-0.5))
    assert alpha.tolist() == pytest.approx([first / (first + second), second / (first + second), 0.0])


def test_representation_by_hand(workbench):
    """h* = tanh(W_p r + W_x h_N) from the model's own LSTM states, for an attention that is even."""
    model = workbench.model("atae_lstm")
    model._attention.weight.data.zero_()
    instance = workbench.instance("soup was cold but bread", "soup was")
    embedded = model._text_field_embedder(workbench.tensors([instance])["text"])
    aspect = embedded[:, :2].mean(dim=1)
    inputs = torch.cat([embedded, aspect.unsqueeze(1).expand(1, 5, 4)], dim=-1)
    hidden, _ = model._text_encoder._module(inputs)
    expected = torch.tanh(model._attended_projection(hidden.mean(dim=1)) + model._final_projection(hidden[:, -1]))
    torch.testing.assert_close(workbench.logits(model, instance), model._projection(expected).detach())
