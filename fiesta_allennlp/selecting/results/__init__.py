"""The verdict, its facts, and the columns of all tables."""
