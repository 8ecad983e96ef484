"""What a replay came to: the content of its JSON file, a table, and words. Read only."""

from typing import Any, Mapping

from rich import box
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.selection.summary import count_text


def replay_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a replay: true mean score and how often each was recommended."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("candidate", overflow="fold")
    table.add_column("true mean", justify="right")
    table.add_column("recommended", justify="right")
    for candidate in summary["candidates"]:
        share = f"{candidate['recommended']:.1%}" if candidate["recommended"] else ""
        table.add_row(escape(candidate["name"]), f"{candidate['true_mean']:.4f}", share)
    return table


def replay_in_words(summary: Mapping[str, Any]) -> str:
    """What a replay came to, in a few lines."""
    evaluations, quantiles = summary["evaluations"], summary["evaluations"]["quantiles"]
    low, high = summary["correct_interval"]
    lines = [
        f"{count_text(summary['repetitions'], 'repetition')} of {summary['strategy']['type']} with "
        f"{summary['belief']['type']}, {summary['splits']} splits, in {summary['seconds']:.1f} s.",
        f"Evaluations: mean {evaluations['mean']:.1f}, median {evaluations['median']:g}, "
        f"5-95 % {quantiles['5']} to {quantiles['95']}, {evaluations['min']} to {evaluations['max']} in all; "
        f"{summary['rounds']['mean']:.1f} rounds of at most {summary['batch_size']}.",
        f"Correct: {summary['correct']:.1%} (95 % interval {low:.1%} to {high:.1%}); undecided "
        f"{summary['undecided']:.1%}; decided on a wrong one {summary['wrong']:.1%}.",
    ]
    if summary["with_replacement"]:
        lines.append("The scores were drawn with replacement.")
    if summary["interrupted"]:
        lines.append("Interrupted: this is what had finished.")
    return "\n".join(lines)
