"""Processes here, Slurm, Ray; ends what a run started."""
