"""A reader and a model of your own, as a package for `--include-package`."""

from own_task.majority_vote import MajorityVote
from own_task.opinions import Opinions

__all__ = ["MajorityVote", "Opinions"]
