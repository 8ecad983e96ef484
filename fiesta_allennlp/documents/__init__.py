"""Trained systems, compared on few documents."""

__all__ = ["choice", "document_file", "document_selection", "document_settings", "queries"]
