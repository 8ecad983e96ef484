"""Fresh runs of a winner, and their test."""

__all__ = ["confirm_settings", "confirmation"]
