"""The result of a selection, as a terminal and a notebook show it."""

from fiesta_allennlp.reports.words import selection_in_words
from fiesta_allennlp.selection.candidate_table import candidate_table
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.showing import TerminalLines, show


@show.register
def _(result: Result) -> TerminalLines:
    table = candidate_table(result, title=result.metric_text)
    return [table, *selection_in_words(result), f"Everything is in {result.directory}."]
