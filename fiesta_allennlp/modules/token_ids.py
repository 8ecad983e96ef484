from typing import Any, Dict, List

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance
from allennlp.data.data_loaders.data_collator import DataCollator
from allennlp.data.fields import LabelField, MetadataField, SequenceLabelField, TextField


@DataCollator.register("token_ids")
class TokenIdsCollator(DataCollator):
    """The batches of AllenNLP's default collator for word ids, characters and labels, in a fraction of its time.

    For small models the default collator takes as long as the model: it pads every instance by itself and stacks the
    tensors. This one pads all instances of a batch at once. Metadata are left out: no training needs them, and AllenNLP
    would search them for tensors in every batch. Use it where every text field has `single_id` or `characters`
    indexers; else use the default.

    Raises:
        ConfigurationError: on a field that is neither text, label, a label for each word nor metadata, or on other
            indexers.
    """

    def __call__(self, instances: List[Instance]) -> Dict[str, Any]:
        batch: Dict[str, Any] = {}
        for name, field in instances[0].fields.items():
            fields = [instance.fields[name] for instance in instances]
            if isinstance(field, TextField):
                batch[name] = _text(name, fields)
            elif isinstance(field, LabelField):
                batch[name] = torch.tensor([label._label_id for label in fields], dtype=torch.long)
            elif isinstance(field, SequenceLabelField):
                batch[name] = torch.from_numpy(_padded([labels._indexed_labels for labels in fields]))
            elif not isinstance(field, MetadataField):
                raise ConfigurationError(
                    f"the collator 'token_ids' takes text, labels and metadata fields but '{name}' is a "
                    f"{type(field).__name__}. Leave 'collate_fn' out of the data loader."
                )
        return batch


def _text(name: str, fields: List[TextField]) -> Dict[str, Dict[str, torch.Tensor]]:
    made: Dict[str, Dict[str, torch.Tensor]] = {}
    for indexer, indexed in fields[0]._indexed_tokens.items():
        (key, *others) = indexed
        if others or key not in ("tokens", "token_characters"):
            raise ConfigurationError(
                f"the collator 'token_ids' takes 'single_id' and 'characters' indexers but the indexer '{indexer}' of "
                f"'{name}' gives {sorted(indexed)}. Leave 'collate_fn' out of the data loader."
            )
        ids = [field._indexed_tokens[indexer][key] for field in fields]
        if key == "tokens":
            padded = _padded(ids)
        else:
            padded = _padded_characters(ids, least=fields[0]._token_indexers[indexer]._min_padding_length)
        made[indexer] = {key: torch.from_numpy(padded)}
    return made


def _padded(ids: List[List[int]]) -> np.ndarray:
    """Shape: `(batch_size, num_words)`."""
    padded = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
    for row, text in zip(padded, ids, strict=True):
        row[: len(text)] = text
    return padded


def _padded_characters(texts: List[List[List[int]]], *, least: int) -> np.ndarray:
    """Return every word as wide as the longest one, but at least `least`. Shape: `(batch_size, num_words,
    num_characters)`."""
    width = max([least, *(len(word) for text in texts for word in text)])
    padded = np.zeros((len(texts), max(map(len, texts)), width), dtype=np.int64)
    for rows, text in zip(padded, texts, strict=True):
        for row, word in zip(rows, text, strict=False):
            row[: len(word)] = word
    return padded
