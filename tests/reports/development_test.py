import pytest
from scipy import stats

from fiesta_allennlp.reports.content import CandidateReport
from fiesta_allennlp.reports.single_scores import report_development


def test_ranks_are_correlated_overall_and_within_candidates() -> None:
    a = CandidateReport("a", scores=(0.1, 0.2, 0.3, 0.4), development_scores=(0.5, 0.7, 0.6, 0.9))
    b = CandidateReport("b", scores=(0.6, 0.5, 0.7), development_scores=(0.2, None, 0.4))
    found = report_development([a, b], "best_validation_f1")
    assert found is not None
    # ranks 1 2 3 4 and 1 3 2 4: rho = 1 - 6 (1 + 1) / (4 * 15)
    assert found.by_candidate == {"a": pytest.approx(0.8)}
    ranks = [stats.rankdata(x) for x in ([0.1, 0.2, 0.3, 0.4, 0.6, 0.7], [0.5, 0.7, 0.6, 0.9, 0.2, 0.4])]
    assert found.overall == pytest.approx(stats.pearsonr(*ranks).statistic)
    assert (found.num_evaluations, found.metric) == (6, "best_validation_f1")


def test_scores_that_are_constant_have_no_correlation() -> None:
    found = report_development([CandidateReport("a", scores=(0.1, 0.2, 0.3), development_scores=(0.5,) * 3)], "m")
    assert found is not None
    assert (found.overall, found.by_candidate) == (None, {})


def test_without_development_scores_there_is_nothing() -> None:
    assert report_development([CandidateReport("a", scores=(0.1, 0.2, 0.3))], "m") is None
