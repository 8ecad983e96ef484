"""Scores that exist: reading, next runs, simulations."""

__all__ = ["next_runs", "run_table", "table_reader", "table_settings"]
