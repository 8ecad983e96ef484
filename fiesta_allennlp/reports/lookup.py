"""What searches by table lookup came to: a table, sentences, and their JSON content."""

from typing import Any, Dict, List, Tuple

from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import number_table
from fiesta_allennlp.searches.lookup import LookupResult
from fiesta_allennlp.searches.protocols import MEANINGS


def lookup_table(result: LookupResult) -> Table:
    """Two rows for each table of runs: the searcher's means and standard deviations, and those of random search."""
    names = _measures(result)
    table = number_table("runs", ("points", *names))
    searcher = result.settings.searcher_params()["type"]
    for name, measured in result.measured.items():
        cells = [_cell(measure, measured.mean_and_sd(measure)) for measure in names]
        table.add_row(f"{escape(name)}, {searcher}", str(len(result.tables[name].points)), *cells)
        exact = [_cell(measure, result.random[name][measure]) for measure in names]
        table.add_row("  random search, exactly", "", *exact)
    return table


def _measures(result: LookupResult) -> List[str]:
    return list(next(iter(result.measured.values())).values)


def _cell(measure: str, moments: Tuple[float, float]) -> str:
    mean, sd = moments
    return f"{mean:.3g} ± {sd:.2g}" if measure == "fb" else f"{mean:.1f} ± {sd:.1f}"


def lookup_in_words(result: LookupResult) -> List[str]:
    """What the columns are, then how to repeat it."""
    settings, protocol = result.settings, result.protocol
    meanings = ". ".join(f"{name}: {MEANINGS[name]}" for name in _measures(result))
    lines = [
        f"{meanings}. Means and standard deviations of {settings.trials} searches for "
        f"{' and '.join(settings.objectives)}; tolerance {protocol.tolerance:g}, first {protocol.budget} runs; "
        f"--seed {settings.entropy} repeats them."
    ]
    if result.interrupted:
        lines.append("Interrupted: these are the tables that were done.")
    return lines


def lookup_content(result: LookupResult) -> Dict[str, Any]:
    """The content of `fiesta-lookup --output`."""
    settings, protocol = result.settings, result.protocol
    return {
        "table": settings.table,
        "inputs": list(settings.inputs),
        "objectives": list(settings.objectives),
        "searcher": settings.searcher_params(),
        "batch_size": settings.batch_size,
        "tolerance": protocol.tolerance,
        "budget": protocol.budget,
        "num_initial": protocol.num_initial,
        "trials": settings.trials,
        "entropy": str(settings.entropy),
        "interrupted": result.interrupted,
        "tables": [
            {
                "name": name,
                "points": len(result.tables[name].points),
                "seconds": measured.seconds,
                "measures": {
                    measure: _moments(measured.mean_and_sd(measure), trials=values.tolist())
                    for measure, values in measured.values.items()
                },
                "random": {measure: _moments(moments) for measure, moments in result.random[name].items()},
            }
            for name, measured in result.measured.items()
        ],
    }


def _moments(moments: Tuple[float, float], **more: Any) -> Dict[str, Any]:
    return {"mean": moments[0], "sd": moments[1], **more}
