from fiesta_allennlp.dataset_readers.semeval_tdsa import SemEvalTdsaReader
from fiesta_allennlp.dataset_readers.word_tokenizer import WordTokenizer

__all__ = ["SemEvalTdsaReader", "WordTokenizer"]
