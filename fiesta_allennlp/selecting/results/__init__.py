"""The verdict, its facts, and the columns of all tables."""

__all__ = ["candidate_result", "candidate_table", "facts", "result", "verdict"]
