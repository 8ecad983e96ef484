"""Words as public word vectors have them, without a model to download."""

import re
from typing import Any, Dict, List

from allennlp.data.tokenizers import Token, Tokenizer

_WORD = re.compile(
    r"n't\b"  # the second half of "don't"
    r"|'(?:s|m|d|re|ve|ll)\b"  # the second half of "it's"
    r"|[^\W_]+(?=n't\b)"  # the first half of "don't"
    r"|[^\W_]+(?:-[^\W_]+)*"  # words, numbers, "top-notch"
    r"|\.\.\.|--|\S",
    re.IGNORECASE,
)


@Tokenizer.register("words")
class WordTokenizer(Tokenizer):
    """Splits contractions as the Penn Treebank does (`do n't`, `it 's`) and keeps a hyphenated word whole.

    The result is close to the tokens of the texts behind GloVe, so that few words lack a vector. The tokenizer needs no
    spaCy model, unlike AllenNLP's default. For a language without spaces between words, use another tokenizer.

    """

    def tokenize(self, text: str) -> List[Token]:
        return [Token(match.group(), idx=match.start()) for match in _WORD.finditer(text)]

    def _to_params(self) -> Dict[str, Any]:
        return {"type": "words"}
