from typing import Any, Type

import pytest

from fiesta_allennlp.documents.systems.base import System, Unanswered


def unanswered(system: System, question: Any, said: str = "", *, kind: Type[Unanswered] = Unanswered) -> Unanswered:
    """The error of a question that must get no answer, whose message says this."""
    with pytest.raises(kind, match=said) as raised:
        system.ask(question)
    return raised.value
