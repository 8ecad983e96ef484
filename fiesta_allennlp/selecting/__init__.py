"""The loop, its session and store, and the result."""
