"""Results in words, pages and pictures."""

__all__ = ["coming_runs", "confirmation_report", "progress", "report_files", "report_settings", "words"]
