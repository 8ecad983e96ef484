"""Configs and programs, their data and one run of each."""

__all__ = ["candidate_types", "points", "select_settings", "splits", "training_selection"]
