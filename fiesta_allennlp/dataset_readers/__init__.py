from fiesta_allennlp.dataset_readers.resplit import ResplitReader
from fiesta_allennlp.dataset_readers.semeval_tdsa import SemEvalTdsaReader
from fiesta_allennlp.dataset_readers.token_ids_collator import TokenIdsCollator
from fiesta_allennlp.dataset_readers.word_tokenizer import WordTokenizer

__all__ = ["ResplitReader", "SemEvalTdsaReader", "TokenIdsCollator", "WordTokenizer"]
