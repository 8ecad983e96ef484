"""Trained systems, compared on few documents."""

__all__ = ["annotated_documents", "document_selection", "document_settings", "queries"]
