import pytest
import torch
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field import allowed_transitions

from fiesta_allennlp.tagging.crf_sequence_tagger import Transitions, best_paths, transitions_of

TAGS = {
    "BIO": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    "IOB1": ["O", "I-PER", "B-PER", "I-LOC", "B-LOC"],
    "BIOUL": ["O", "B-PER", "I-PER", "L-PER", "U-PER", "B-LOC", "I-LOC", "L-LOC", "U-LOC"],
}


def crf_of(encoding, *, has_ends=True):
    names = dict(enumerate(TAGS[encoding or "BIO"]))
    constraints = None if encoding is None else allowed_transitions(encoding, names)
    return ConditionalRandomField(len(names), constraints, include_start_end_transitions=has_ends)


def batch(rng, num_tags):
    """Random logits and lengths, a sentence of one word and a longest one among them."""
    num_words = int(torch.randint(1, 12, (), generator=rng))
    lengths = torch.randint(1, num_words + 1, (6,), generator=rng)
    lengths[0], lengths[1] = num_words, 1
    mask = torch.arange(num_words) < lengths.unsqueeze(1)
    scale = 10 ** torch.rand((), generator=rng)
    return torch.randn(6, num_words, num_tags, generator=rng) * scale, mask


@pytest.mark.parametrize("has_ends", [True, False])
@pytest.mark.parametrize("encoding", [*TAGS, None])
def test_tags_and_scores_are_exactly_those_of_allennlp(encoding, has_ends):
    rng = torch.Generator().manual_seed(7)
    torch.manual_seed(11)
    for _ in range(15):
        crf = crf_of(encoding, has_ends=has_ends)
        logits, mask = batch(rng, crf.num_tags)
        paths = best_paths(logits, mask, transitions_of(crf))
        for row, (tags, _) in enumerate(crf.viterbi_tags(logits, mask)):
            assert paths[row, : len(tags)].tolist() == tags


def test_a_case_by_hand():
    # Two tags. Word by word 1, 0, 1 is best (5 + 4 + 5), but each change of tag costs 3.
    logits = torch.tensor([[[0.0, 5.0], [4.0, 2.0], [0.0, 5.0]]])
    between = torch.tensor([[0.0, -3.0], [-3.0, 0.0]])
    none = torch.zeros(2)
    mask = torch.ones(1, 3, dtype=torch.bool)
    paths = best_paths(logits, mask, Transitions(none, between, none))
    assert paths.tolist() == [[1, 1, 1]]
    paths = best_paths(logits, mask, Transitions(torch.tensor([9.0, 0.0]), between, torch.tensor([9.0, 0.0])))
    assert paths.tolist() == [[0, 0, 0]]
