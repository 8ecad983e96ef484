import torch

from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader


def test_blind_to_the_words_of_the_target(workbench):
    model = workbench.model("td_lstm")
    bread = workbench.instance("We adored the bread but", "bread")
    wine = workbench.instance("We adored the wine list but", "wine list")
    assert torch.equal(workbench.logits(model, bread), workbench.logits(model, wine))


def test_sees_the_words_of_the_target_on_request(workbench):
    workbench.reader = SemEvalTdsaReader(include_target=True)
    model = workbench.model("td_lstm")
    bread = workbench.instance("We adored the bread but", "bread")
    wine = workbench.instance("We adored the wine list but", "wine list")
    assert not torch.allclose(workbench.logits(model, bread), workbench.logits(model, wine))


def test_tells_two_targets_of_a_sentence_apart(workbench):
    logits = workbench.logits(workbench.model("td_lstm"), *workbench.instances[:2])
    assert not torch.allclose(logits[0], logits[1])


def test_each_context_is_read_towards_the_target(workbench):
    """The representation is what two bare LSTMs give, the right one fed from the end of the sentence."""
    model = workbench.model("td_lstm")
    instance = workbench.instance("soup was cold but the bread", "cold")
    tensors = workbench.tensors([instance])
    embed = model._text_field_embedder
    _, (left, _) = model._left_encoder._module(embed(tensors["left"]))
    _, (right, _) = model._right_encoder._module(embed(tensors["right"]).flip(1))
    torch.testing.assert_close(
        workbench.logits(model, instance), model._projection(torch.cat([left[0], right[0]], dim=-1)).detach()
    )


def test_a_target_without_context_is_represented_by_zeros(workbench):
    model = workbench.model("td_lstm")
    torch.testing.assert_close(workbench.logits(model, workbench.instances[3])[0], model._projection.bias.detach())
