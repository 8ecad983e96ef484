from searchers.base import NUM_INITIAL, Points, Random, Searcher, SearchHistory
from searchers.gaussian_process import GpEhvi, GpEi, GraphEhvi, GraphEi, GraphEif

__all__ = [
    "NUM_INITIAL",
    "GpEhvi",
    "GpEi",
    "GraphEhvi",
    "GraphEi",
    "GraphEif",
    "Points",
    "Random",
    "SearchHistory",
    "Searcher",
]
