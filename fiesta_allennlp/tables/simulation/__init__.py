"""Selections on drawn scores: `plan` and `replay`."""

__all__ = ["planning", "score_sources"]
