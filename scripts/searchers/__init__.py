from searchers.base import NUM_INITIAL, Points, Random, Searcher, SearchHistory
from searchers.gaussian_process import GpEi, GraphEi, GraphEif

__all__ = ["NUM_INITIAL", "GpEi", "GraphEi", "GraphEif", "Points", "Random", "SearchHistory", "Searcher"]
