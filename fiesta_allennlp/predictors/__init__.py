from fiesta_allennlp.predictors.tdsa import TdsaPredictor

__all__ = ["TdsaPredictor"]
