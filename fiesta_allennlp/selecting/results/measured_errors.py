"""How often winners are wrong, by their P(best) and lead: measured with the default rule, on scores of real models."""

from bisect import bisect_right
from typing import Optional, Tuple

from fiesta_allennlp.choosing.beliefs.moderated_t import ModeratedT
from fiesta_allennlp.choosing.decision import ClassErrors, Decision
from fiesta_allennlp.choosing.probability.batch import nearest_rival
from fiesta_allennlp.choosing.stopping_rules import EarlyLooks
from fiesta_allennlp.choosing.strategy import Strategy
from fiesta_allennlp.choosing.thompson import TopTwo
from fiesta_allennlp.core.settings.defaults import CONFIDENCE

PROB_LIMITS = (0.98,)
"""Limits between the classes of P(best)."""

LEAD_LIMITS = (1.0, 2.0)
"""Limits between the classes of the lead over the nearest rival, in run-to-run sds."""

CLASS_ERRORS = (
    (ClassErrors(138, 3655), ClassErrors(30, 691), ClassErrors(1, 187)),
    (ClassErrors(6, 103), ClassErrors(61, 1638), ClassErrors(73, 3484)),
)
"""By class of P(best), then of the lead. From `scripts/benchmarks/ends.py`, on the problems of both sets."""


def class_of(decision: Decision) -> Optional[Tuple[int, int]]:
    """Return the classes of P(best) and of the lead of the best candidate. None if that has no rival, or if nothing
    varied."""
    names, posterior = tuple(decision.prob_best), decision.posterior
    if posterior is None or decision.best not in names or not posterior.noise_sd or not posterior.has_margin:
        return None
    leads = posterior.leads_of(names.index(decision.best))
    rival = int(nearest_rival(leads, leads.tails())[0])
    lead_in_sds = float(leads.difference[0, rival]) / posterior.noise_sd
    return bisect_right(PROB_LIMITS, decision.prob_best[decision.best]), bisect_right(LEAD_LIMITS, lead_in_sds)


def find_class_errors(decision: Decision, strategy: Strategy) -> Optional[ClassErrors]:
    """Return the errors of winners such as the best candidate. None for other rules than the default, for which
    nothing was measured."""
    is_default = (
        type(strategy) is TopTwo
        and decision.posterior is not None
        and decision.posterior.num_tasks == 1
        and type(strategy.belief) is ModeratedT
        and type(strategy.stop) is EarlyLooks
        and (strategy.confidence, strategy.parsed_margin.size) == (CONFIDENCE, 0)
    )
    place = class_of(decision) if is_default and decision.stopped_by == "confidence" else None
    return place and CLASS_ERRORS[place[0]][place[1]]
