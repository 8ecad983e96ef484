"""The representation of each model, by hand."""

import math

import pytest
import torch

from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader
from tests.tdsa.conftest import instance


class TestAtaeLstm:
    def test_attention(self, workbench):
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

    def test_representation(self, workbench):
        """h* = tanh(W_p r + W_x h_N) from the model's own LSTM states, for an attention that is even."""
        model, made = workbench.model("atae_lstm"), instance("soup was cold but bread", "soup was")
        model._attention.weight.data.zero_()
        embedded = model._text_field_embedder(workbench.tensors(made)["text"])
        aspect = embedded[:, :2].mean(dim=1)
        hidden, _ = model._text_encoder._module(torch.cat([embedded, aspect.unsqueeze(1).expand(1, 5, 4)], dim=-1))
        expected = torch.tanh(model._attended_projection(hidden.mean(dim=1)) + model._final_projection(hidden[:, -1]))
        torch.testing.assert_close(workbench.logits(model, made), model._projection(expected).detach())


def test_ian(workbench):
    """alpha = softmax(tanh(h_i W_a t_avg + b_a)) and beta with the roles exchanged."""
    model, made = workbench.model("ian"), instance("soup was cold but wine list", "wine list")
    model._text_attention._bias.data.fill_(0.2)
    tensors = workbench.tensors(made)
    text, _ = model._text_encoder._module(model._text_field_embedder(tensors["text"]))
    target, _ = model._target_encoder._module(model._text_field_embedder(tensors["target"]))
    text, target = text[0], target[0]
    scores = torch.tanh(text @ model._text_attention._weight_matrix.t() @ target.mean(dim=0) + 0.2)
    context = torch.softmax(scores, dim=0) @ text
    scores = torch.tanh(target @ model._target_attention._weight_matrix.t() @ text.mean(dim=0))
    expected = torch.cat([context, torch.softmax(scores, dim=0) @ target])
    torch.testing.assert_close(workbench.logits(model, made)[0], model._projection(expected).detach())


def test_target_lstm_is_blind_to_the_target(workbench):
    model, made = workbench.model("target_lstm"), workbench.instances[0]
    _, (hidden, _) = model._text_encoder._module(model._text_field_embedder(workbench.tensors(made)["text"]))
    logits = workbench.logits(model, *workbench.instances[:2])
    torch.testing.assert_close(logits, model._projection(hidden[0]).detach().expand(2, -1))


class TestTdLstm:
    def test_each_context_is_read_towards_the_target(self, workbench):
        """The representation is what two bare LSTMs give, the right one fed from the end of the sentence."""
        model, made = workbench.model("td_lstm"), instance("soup was cold but the bread", "cold")
        tensors = workbench.tensors(made)
        embed = model._text_field_embedder
        _, (left, _) = model._left_encoder._module(embed(tensors["left"]))
        _, (right, _) = model._right_encoder._module(embed(tensors["right"]).flip(1))
        expected = model._projection(torch.cat([left[0], right[0]], dim=-1)).detach()
        torch.testing.assert_close(workbench.logits(model, made), expected)
        without_context = workbench.logits(model, workbench.instances[3])[0]
        torch.testing.assert_close(without_context, model._projection.bias.detach())

    @pytest.mark.parametrize("include_target", [False, True])
    def test_the_words_of_the_target_are_seen_on_request(self, workbench, include_target):
        model, reader = workbench.model("td_lstm"), SemEvalTdsaReader(include_target=include_target)
        cases = (("We adored the bread but", "bread"), ("We adored the wine list but", "wine list"))
        bread, wine = (workbench.logits(model, instance(*case, reader=reader)) for case in cases)
        assert torch.allclose(bread, wine) is not include_target
