"""Configs and programs, their data and one run of each."""
