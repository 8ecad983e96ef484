"""The loop, its session and store, and the result."""

__all__ = ["database", "failures", "loop", "objections", "provenance", "session", "store", "workspace"]
