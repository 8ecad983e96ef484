"""Shows the answer of `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.reports.latex_and_html import render_paragraphs
from fiesta_allennlp.reports.words import time_forecast_text, verdict_in_words
from fiesta_allennlp.selecting.results.candidate_table import Printable, TerminalLines, candidate_table, show
from fiesta_allennlp.selecting.results.facts import NEXT, fact_sentences, fact_values
from fiesta_allennlp.selecting.results.task_standing import task_table
from fiesta_allennlp.tables.next_runs import NextRuns, next_runs
from fiesta_allennlp.tables.table_files import Content
from fiesta_allennlp.tables.table_settings import NextSettings


@dataclass(frozen=True, repr=False)
class PrintableNextRuns(Printable, NextRuns):
    """`NextRuns` that print as a table and sentences, on a terminal and in a notebook."""

    @property
    def data(self) -> Dict[str, Any]:
        """The answer as plain data; `stopped_by` is null while runs are needed."""
        result, time = self.result, self.time_forecast
        return {
            "metric": result.metric,
            **fact_values(result),
            "prob_best": dict(self.decision.prob_best),
            "num_pending": len(self.history.pending),
            "splits": result.splits,
            "table": self.read_back.data,
            "notes": list(self.notes),
            "num_missed": {c.name: c.num_missed for c in result.candidates if c.num_missed},
            "time": time and asdict(time),
            "next": [asdict(run) for run in self.runs],
        }

    @property
    def sentences(self) -> List[str]:
        """Who leads, and the runs to make. The last sentence of a selection without further runs is its ending."""
        time, is_over = self.time_forecast, self.result.stopped_by not in (None, "failures")
        after = f"after {count_text(self.result.num_evaluations, 'run')} of {len(self.result.candidates)} candidates"
        missing = [f"{count_text(number, 'run')} of {name}" for name, number in self.num_missing.items()]
        return render_paragraphs(
            "next.j2",
            next_runs=self,
            result=self.result,
            missing=join_some(missing),
            time=time and time_forecast_text(time),
            facts=fact_sentences(self.result, NEXT),
            verdict=verdict_in_words(self.result, after) if is_over else "",
        )


@show.register
def _(answer: PrintableNextRuns) -> TerminalLines:
    tasks = [task_table(answer.result)] if answer.result.tasks else []
    return [candidate_table(answer.result, title=answer.metric.display_name), *tasks, *answer.sentences]


def ask_next_runs(settings: NextSettings, content: Content = None) -> PrintableNextRuns:
    """Ask about a table of scores, as `tables.next_runs.next_runs` does."""
    return PrintableNextRuns(**vars(next_runs(settings, content)))
