"""Records, options, errors, files, the lock, seeds."""
