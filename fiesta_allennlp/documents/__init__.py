"""Trained systems, compared on few documents."""
