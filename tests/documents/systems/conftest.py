from typing import Any, Optional, Type

import pytest

from fiesta_allennlp.documents.systems.system import System, Unanswered


def unanswered(
    system: System, question: Any, said: Optional[str] = None, *, kind: Type[Unanswered] = Unanswered
) -> Unanswered:
    """The error of a question that must get no answer, whose message says this."""
    with pytest.raises(kind, match=said) as raised:
        system.ask(question)
    return raised.value
