from fiesta_allennlp.searches.searchers.base import Points, Random, Searcher, SearchHistory
from fiesta_allennlp.searches.searchers.gaussian_process import GpEhvi, GpEi, GraphEhvi, GraphEi, GraphEif

__all__ = ["GpEhvi", "GpEi", "GraphEhvi", "GraphEi", "GraphEif", "Points", "Random", "SearchHistory", "Searcher"]
