"""Shows the answer of `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List

from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS
from fiesta_allennlp.reports.formats import Printable, TerminalLines, render_paragraphs
from fiesta_allennlp.reports.undecided import best_set_in_words, margin_in_words, pair_in_words, undecided_in_words
from fiesta_allennlp.selection.candidate_table import Table, candidate_table, num_decimals
from fiesta_allennlp.selection.progress import forecast_text, time_forecast_text
from fiesta_allennlp.selection.texts import loss_text
from fiesta_allennlp.tables.next_runs import NextRuns


@dataclass(frozen=True, repr=False)
class PrintableNextRuns(Printable, NextRuns):
    """`NextRuns` that print as a table and sentences, on a terminal and in a notebook."""

    def shown(self) -> TerminalLines:
        return [next_runs_table(self), *next_runs_in_words(self)]


def next_runs_data(next_runs: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    result, forecast, time = next_runs.result, next_runs.forecast, next_runs.time_forecast
    return {
        "metric": result.metric,
        "leading": result.leading,
        "best_set": result.best_set,
        "stopped_by": result.stopped_by,
        "prob_best": dict(next_runs.decision.prob_best),
        "undecided": result.undecided,
        "expected_loss": result.expected_loss,
        "pair_alone": result.pair_alone and asdict(result.pair_alone),
        "margin": result.margin,
        "credible_margin": result.credible_margin,
        "num_runs": result.num_evaluations,
        "num_pending": len(next_runs.history.pending),
        "splits": next_runs.splits,
        "table": next_runs.read_back.data,
        "notes": list(next_runs.notes),
        "collapsed": result.collapsed,
        "num_missed": {candidate.name: candidate.num_missed for candidate in result.candidates if candidate.num_missed},
        "forecast": forecast and asdict(forecast),
        "time": time and asdict(time),
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in next_runs.runs],
    }


def next_runs_table(next_runs: NextRuns) -> Table:
    return candidate_table(next_runs.result, title=next_runs.metric.display_name)


def next_runs_in_words(next_runs: NextRuns) -> List[str]:
    """Describe who leads and the runs to make. The last sentence of a selection without further runs is its ending."""
    result = next_runs.result
    is_final = result.stopped_by not in (None, *INCONCLUSIVE_REASONS)
    loss_note = "" if is_final else loss_text(result.leading, result.expected_loss, num_decimals(result.candidates))
    time = next_runs.time_forecast
    template_values = {
        "result": result,
        "forecast": forecast_text(next_runs.forecast, seconds_per_run=next_runs.seconds_per_run or 0.0),
        "time": time and time_forecast_text(time),
        "loss": loss_note,
        "set_text": best_set_in_words(result),
        "pair_text": pair_in_words(result),
        "margin_text": margin_in_words(result),
        "undecided_text": undecided_in_words(result),
    }
    return render_paragraphs("next.j2", next_runs=next_runs, **template_values)
