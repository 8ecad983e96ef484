import torch


def test_target_matters(workbench):
    logits = workbench.logits(workbench.model("ian"), *workbench.instances[:2])
    assert not torch.allclose(logits[0], logits[1])


def test_attention_by_hand(workbench):
    """alpha = softmax(tanh(h_i W_a t_avg + b_a)) and beta with the roles exchanged."""
    model = workbench.model("ian")
    model._text_attention._bias.data.fill_(0.2)
    instance = workbench.instance("soup was cold but wine list", "wine list")
    tensors = workbench.tensors([instance])
    text, _ = model._text_encoder._module(model._text_field_embedder(tensors["text"]))
    target, _ = model._target_encoder._module(model._text_field_embedder(tensors["target"]))
    text, target = text[0], target[0]
    scores = torch.tanh(text @ model._text_attention._weight_matrix.t() @ target.mean(dim=0) + 0.2)
    context = torch.softmax(scores, dim=0) @ text
    scores = torch.tanh(target @ model._target_attention._weight_matrix.t() @ text.mean(dim=0))
    expected = torch.cat([context, torch.softmax(scores, dim=0) @ target])
    torch.testing.assert_close(workbench.logits(model, instance)[0], model._projection(expected).detach())
