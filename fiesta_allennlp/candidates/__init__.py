"""Configs and programs, their data and one run of each."""

__all__ = ["candidate_types", "points", "pool", "select_settings", "training_selection"]
