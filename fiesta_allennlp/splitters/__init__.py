"""Seed in, indices out: which instances of a pool go to training, validation and test."""

from fiesta_allennlp.splitters.splitters import PARTS, Split, group_targets, split_pool

__all__ = ["PARTS", "Split", "group_targets", "split_pool"]
