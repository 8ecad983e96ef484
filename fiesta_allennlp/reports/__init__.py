"""Results in words, pages and pictures."""

__all__ = ["coming_runs", "confirmation_report", "progress", "report", "report_settings", "words"]
