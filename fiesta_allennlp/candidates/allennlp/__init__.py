"""Runs of AllenNLP configs: all that imports torch."""

__all__ = ["instances", "training"]
