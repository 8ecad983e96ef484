import torch


def test_blind_to_which_words_are_the_target(workbench):
    logits = workbench.logits(workbench.model("target_lstm"), *workbench.instances[:3])
    assert torch.equal(logits[0], logits[1])
    assert not torch.allclose(logits[1], logits[2])


def test_represents_a_sentence_by_the_last_hidden_state(workbench):
    model = workbench.model("target_lstm")
    instance = workbench.instances[0]
    _, (hidden, _) = model._text_encoder._module(model._text_field_embedder(workbench.tensors([instance])["text"]))
    torch.testing.assert_close(workbench.logits(model, instance), model._projection(hidden[0]).detach())
