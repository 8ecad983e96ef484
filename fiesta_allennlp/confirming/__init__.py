"""Fresh runs of a winner, and their test."""
