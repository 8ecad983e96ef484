"""The best tags of all sentences of a batch at once."""

from typing import NamedTuple

import torch
from allennlp.modules import ConditionalRandomField

FORBIDDEN = -10000.0
"""The score of a transition that is not allowed. It is that of AllenNLP's decoder, so that both give equal scores."""


class Transitions(NamedTuple):
    """Scores of a conditional random field, with `FORBIDDEN` for the transitions that are not allowed."""

    start: torch.Tensor
    """Shape: (num_tags,)"""
    between: torch.Tensor
    """The score of going from the tag of the row to the tag of the column. Shape: (num_tags, num_tags)"""
    end: torch.Tensor
    """Shape: (num_tags,)"""


class BestPaths(NamedTuple):
    """The best tags of each sentence and the score of these tags."""

    tags: torch.Tensor
    """The tags; masked positions have no meaning. Shape: (batch_size, num_words)"""
    scores: torch.Tensor
    """Sum of logits and transitions. Shape: (batch_size,)"""


def transitions_of(crf: ConditionalRandomField) -> Transitions:
    """Return the field's transitions as numbers, with its constraints."""
    num_tags = crf.num_tags
    allowed = crf._constraint_mask.detach()
    scores = torch.zeros_like(allowed)
    scores[:num_tags, :num_tags] = crf.transitions.detach()
    if crf.include_start_end_transitions:
        scores[num_tags, :num_tags] = crf.start_transitions.detach()
        scores[:num_tags, num_tags + 1] = crf.end_transitions.detach()
    scores = scores * allowed + FORBIDDEN * (1 - allowed)
    return Transitions(scores[num_tags, :num_tags], scores[:num_tags, :num_tags], scores[:num_tags, num_tags + 1])


def best_paths(logits: torch.Tensor, mask: torch.Tensor, transitions: Transitions) -> BestPaths:
    """Run Viterbi's algorithm over a batch, in one step for each position, whatever the number of sentences.

    With delta_1(j) = start_j + logits_1j, position t has::

        delta_t(j) = max_i (delta_{t-1}(i) + between_ij) + logits_tj,

    and the i of this maximum is the tag before j. Where a sentence is padded, delta does not change.

    Args:
        logits: shape (batch_size, num_words, num_tags).
        mask: false where a sentence is padded, after its last word. Shape: (batch_size, num_words).
    """
    _, num_words, num_tags = logits.shape
    # Shape: (1, num_tags)
    same = torch.arange(num_tags, device=logits.device).unsqueeze(0)
    # Shape: (batch_size, num_tags)
    delta = transitions.start + logits[:, 0]
    before = []
    for position in range(1, num_words):
        is_word = mask[:, position].unsqueeze(1)
        # Shape of both: (batch_size, num_tags)
        best, argument = (delta.unsqueeze(2) + transitions.between).max(dim=1)
        delta = torch.where(is_word, best + logits[:, position], delta)
        before.append(torch.where(is_word, argument, same))
    scores, tag = (delta + transitions.end).max(dim=1)
    tags = [tag]
    for argument in reversed(before):
        tag = argument.gather(1, tag.unsqueeze(1)).squeeze(1)
        tags.append(tag)
    return BestPaths(torch.stack(tags[::-1], dim=1), scores)
