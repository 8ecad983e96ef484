"""What it takes to claim that the winner is better than its rival."""

from fiesta_allennlp.selecting.results.claim import SeenLead
from tests.reports.made_up import candidate


def test_too_few_runs_say_nothing_about_a_plan() -> None:
    seen = SeenLead.of(candidate("a", [0.9]), candidate("b", [0.8]), sign=1, is_paired=True)
    assert seen.lead is None and seen.power(10) is None


def test_a_claim_takes_the_fewest_runs_that_confirm_the_lead_with_power_80() -> None:
    for sds in ((0.02,), (0.02, 0.03)):
        lead = SeenLead("b", 0.015, sds)
        needed = lead.num_runs_for_claim()
        assert needed is not None and lead.power(needed) >= 0.8 > lead.power(needed - 1)
        assert needed < lead.num_runs_for_claim(num_rivals=3)
    assert SeenLead("b", -0.1, (0.02,)).num_runs_for_claim() is SeenLead("b").num_runs_for_claim() is None
    assert SeenLead("b", 1e-6, (0.02,)).num_runs_for_claim() is None
