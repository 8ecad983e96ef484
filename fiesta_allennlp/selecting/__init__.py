"""The loop, its session and store, and the result."""

__all__ = ["database", "loop", "objections", "provenance", "recovery", "session", "store", "workspace"]
