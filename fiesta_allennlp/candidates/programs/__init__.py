"""Runs of programs, and their data."""

__all__ = ["program"]
