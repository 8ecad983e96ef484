"""Scores that exist: reading, next runs, simulations."""
