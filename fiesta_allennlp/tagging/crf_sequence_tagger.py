"""A tagger with a conditional random field on top, and its decoder."""

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.conditional_random_field import allowed_transitions
from allennlp.nn import InitializerApplicator

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.tagging.sequence_tagger import SequenceTagger

FORBIDDEN = -10000.0
"""The score of a transition that is not allowed. It is that of AllenNLP's decoder, so that both give equal scores."""


@Model.register("crf_sequence_tagger")
class CrfSequenceTagger(SequenceTagger):
    """An encoder and a linear-chain conditional random field over the tags.

    The model is that of `Huang et al. (2015) <https://arxiv.org/abs/1508.01991>`__, section 2.5. With embedded words
    and characters it is the tagger of `Lample et al. (2016) <https://aclanthology.org/N16-1030>`__ and of `Ma and Hovy
    (2016) <https://aclanthology.org/P16-1101>`__. With A the transitions and P the logits of sentence X, tags y have
    the probability::

        p(y | X) = exp s(X, y) / sum_y' exp s(X, y'),  s(X, y) = sum_i A_{y_i, y_{i+1}} + sum_i P_{i, y_i}

    (Lample et al., section 2.2, where y_0 and y_{n+1} are the start and the end). AllenNLP computes the likelihood. The
    tagger decodes all sentences of a batch at once.

    Args:
        constrain_decoding: Whether decoding gives only tags that the label encoding allows. The likelihood is over all
            tags.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        constrain_decoding: bool = True,
        include_start_end_transitions: bool = True,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, encoder, **kwargs)
        constraints: Optional[List[Tuple[int, int]]] = None
        if constrain_decoding and self._label_encoding is not None:
            constraints = allowed_transitions(self._label_encoding, self._tag_names)
        self._crf = ConditionalRandomField(len(self._tag_names), constraints, include_start_end_transitions)
        initializer(self)

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not self.training:
            self._check_allowed(tags, mask)
        return self._crf(logits, tags, mask)

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return best_paths(logits, mask, transitions_of(self._crf))

    def _check_allowed(self, tags: torch.Tensor, mask: torch.Tensor) -> None:
        """Refuse right tags that decoding could never give."""
        # Shape: (batch_size, num_words - 1)
        is_wrong = (self._crf._constraint_mask[tags[:, :-1], tags[:, 1:]] == 0) & mask[:, 1:]
        if is_wrong.any():
            row, column = is_wrong.nonzero()[0].tolist()
            first, second = (self._tag_names[int(tags[row, place])] for place in (column, column + 1))
            raise ConfigError(
                f"label_encoding is '{self._label_encoding}', which does not allow '{second}' after '{first}', but the "
                "data have them. Give the encoding of the reader's tags, let the reader convert them with "
                "`convert_to`, or set `constrain_decoding` to false."
            )


class Transitions(NamedTuple):
    """Scores of a conditional random field, with `FORBIDDEN` for the transitions that are not allowed."""

    start: torch.Tensor
    """Shape: (num_tags,)"""
    between: torch.Tensor
    """The score of going from the tag of the row to the tag of the column. Shape: (num_tags, num_tags)"""
    end: torch.Tensor
    """Shape: (num_tags,)"""


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


def best_paths(logits: torch.Tensor, mask: torch.Tensor, transitions: Transitions) -> torch.Tensor:
    """Return the best tags by Viterbi's algorithm, in one step for each position, whatever the number of sentences.

    With delta_1(j) = start_j + logits_1j, position t has::

        delta_t(j) = max_i (delta_{t-1}(i) + between_ij) + logits_tj,

    and the i of this maximum is the tag before j. Where a sentence is padded, delta does not change.

    Args:
        logits: shape (batch_size, num_words, num_tags).
        mask: false where a sentence is padded, after its last word. Shape: (batch_size, num_words), as the result.
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
    tag = (delta + transitions.end).max(dim=1).indices
    tags = [tag]
    for argument in reversed(before):
        tag = argument.gather(1, tag.unsqueeze(1)).squeeze(1)
        tags.append(tag)
    return torch.stack(tags[::-1], dim=1)
