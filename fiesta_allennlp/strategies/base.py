from typing import List, Optional

import numpy as np
from allennlp.common import Registrable

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.records import CredibleMargin, Decision, History


class Strategy(Registrable):
    """Chooses what to train next and says when it is enough. Holds no state: everything is in the history.

    One strategy serves one worker or many, synchronous or not, and a resumed run: whoever calls it gives the
    history, pending evaluations included, and the number of workers that are free.

    `belief` gives the probabilities that it reports.
    """

    belief: Belief

    def check(self, candidates: List[str]) -> None:
        """Refuse settings that cannot work for these candidates, before the first training.

        # Raises

        `ConfigError` : with the rule, the value and the remedy.
        """
        raise NotImplementedError

    def check_room(self, history: History) -> None:
        """Refuse a limit that leaves no room for candidates that joined a selection which had begun.

        # Raises

        `ConfigError` : with the least limit that does.
        """
        raise NotImplementedError

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        """At most `slots` names of active candidates to train next, with repetition.

        An empty list means: nothing to start now. With nothing pending it means that the selection is over.
        """
        raise NotImplementedError

    def recommend(self, history: History) -> Decision:
        """The decision as of now. `stopped_by` is set if and only if the selection is over, whatever is pending."""
        raise NotImplementedError

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        """The margin at which the selection would be over now. `None` where it is not by a probability that it ends,
        and where more evaluations are needed."""
        return None

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        """The least and the most evaluations a run with `num_candidates` candidates can take."""
        raise NotImplementedError
