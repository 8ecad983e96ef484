"""Records, options, errors, files, seeds, texts."""
