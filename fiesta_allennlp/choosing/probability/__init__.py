"""Arrays in, numbers out."""

__all__ = ["batch", "leads", "prob_best"]
