"""Results in words, pages and pictures."""
