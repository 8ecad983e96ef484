"""Shows the answer of `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List

from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS
from fiesta_allennlp.reports.formats import render_paragraphs
from fiesta_allennlp.reports.undecided import best_set_in_words, margin_in_words, pair_in_words, undecided_in_words
from fiesta_allennlp.selection.candidate_table import candidate_table, num_decimals
from fiesta_allennlp.selection.showing import Printable, TerminalLines, show
from fiesta_allennlp.selection.texts import forecast_text, loss_text, time_forecast_text
from fiesta_allennlp.tables.forms import Content
from fiesta_allennlp.tables.next_runs import NextRuns, next_runs
from fiesta_allennlp.tables.settings import NextSettings


@dataclass(frozen=True, repr=False)
class PrintableNextRuns(Printable, NextRuns):
    """`NextRuns` that print as a table and sentences, on a terminal and in a notebook."""

    @property
    def data(self) -> Dict[str, Any]:
        """The answer as plain data; `stopped_by` is null while runs are needed."""
        result, forecast, time = self.result, self.forecast, self.time_forecast
        return {
            "metric": result.metric,
            "leading": result.leading,
            "best_set": result.best_set,
            "stopped_by": result.stopped_by,
            "prob_best": dict(self.decision.prob_best),
            "undecided": result.undecided,
            "expected_loss": result.expected_loss,
            "pair_alone": result.pair_alone and asdict(result.pair_alone),
            "margin": result.margin,
            "credible_margin": result.credible_margin,
            "num_runs": result.num_evaluations,
            "num_pending": len(self.history.pending),
            "splits": self.splits,
            "table": self.read_back.data,
            "notes": list(self.notes),
            "collapsed": result.collapsed,
            "num_missed": {c.name: c.num_missed for c in result.candidates if c.num_missed},
            "forecast": forecast and asdict(forecast),
            "time": time and asdict(time),
            "next": [asdict(run) for run in self.runs],
        }

    @property
    def sentences(self) -> List[str]:
        """Who leads, and the runs to make. The last sentence of a selection without further runs is its ending."""
        result, time = self.result, self.time_forecast
        is_final = result.stopped_by not in (None, *INCONCLUSIVE_REASONS)
        loss_note = "" if is_final else loss_text(result.leading, result.expected_loss, num_decimals(result.candidates))
        return render_paragraphs(
            "next.j2",
            next_runs=self,
            result=result,
            forecast=forecast_text(self.forecast, seconds_per_run=self.seconds_per_run or 0.0),
            time=time and time_forecast_text(time),
            loss=loss_note,
            set_text=best_set_in_words(result),
            pair_text=pair_in_words(result),
            margin_text=margin_in_words(result),
            undecided_text=undecided_in_words(result),
        )


@show.register
def _(answer: PrintableNextRuns) -> TerminalLines:
    return [candidate_table(answer.result, title=answer.metric.display_name), *answer.sentences]


def ask_next_runs(settings: NextSettings, content: Content = None) -> PrintableNextRuns:
    """Ask about a table of scores, as `tables.next_runs.next_runs` does."""
    return PrintableNextRuns(**vars(next_runs(settings, content)))
