"""Processes here, Slurm, Ray; ends what a run started."""

__all__ = ["executor", "fork_server", "jobs", "machine", "process_tree", "processes", "slurm", "worker"]
