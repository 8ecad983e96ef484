"""Searches by table lookup: the same searcher again and again over runs that have finished."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.errors import ConfigError, plainly
from fiesta_allennlp.searches.lookup_settings import BLEU, LookupSettings
from fiesta_allennlp.searches.protocols import BLEU_TOLERANCE, BUDGET, FRONT_BUDGET, Protocol
from fiesta_allennlp.searches.random_search import exact_random_search
from fiesta_allennlp.searches.searchers.base import Searcher, SearchHistory
from fiesta_allennlp.searches.tables import Columns, SearchTable, open_tables
from fiesta_allennlp.seeding import SEARCH_STREAM, fresh_entropy, replay_rng


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of all trials, by the protocol's name. Shape of each: `(num_trials,)`."""

    values: Mapping[str, np.ndarray]
    seconds: float = 0.0

    @classmethod
    def of(cls, trials: Sequence[Mapping[str, float]], *, seconds: float = 0.0) -> "Measured":
        return cls({name: np.array([trial[name] for trial in trials]) for name in trials[0]}, seconds)

    def mean_and_sd(self, name: str) -> Tuple[float, float]:
        """Of a measure; the standard deviation is that of the trials as a population, as in the paper."""
        return float(self.values[name].mean()), float(self.values[name].std())


@dataclass(frozen=True, eq=False)
class Lookup:
    """One searcher on one table.

    Attributes:
        batch_size: how many points are run at once. The next ones are chosen when all of them have ended.
        entropy: master random seed. A trial begins with the same random points whatever the searcher is.

    Raises:
        ConfigError: where the searcher needs more objectives, or the protocol more runs, than the table has.
    """

    table: SearchTable
    searcher: Searcher
    protocol: Protocol
    entropy: int
    batch_size: int = 1

    def __post_init__(self) -> None:
        self.protocol.check(self.table)
        wanted, given = self.searcher.num_objectives, self.table.objectives
        if wanted > len(given):
            raise ConfigError(
                f"this searcher needs {wanted} objectives but got {', '.join(given)}. Give it two, or choose gp_ei."
            )

    def order(self, trial: int) -> List[int]:
        """The rows in the order in which they were run, as many as the protocol asks for."""
        rng = replay_rng(self.entropy, SEARCH_STREAM, trial)
        history = SearchHistory(self.table.points, scores=self.table.scores[:0])
        while not self.protocol.is_settled(history.seen, self.table):
            seen = (*history.seen, *self.searcher.propose(history, self.batch_size, rng))
            history = replace(history, seen=seen, scores=self.table.scores[list(seen)])
        return list(history.seen)

    def run(self, num_trials: int, on_trials: Callable[[int], None] = lambda number: None) -> Measured:
        """Trials 0 to `num_trials` - 1. `on_trials` is called with 1 after each."""
        start = time.monotonic()
        found: List[Dict[str, float]] = []
        for trial in range(num_trials):
            found.append(self.protocol.measures(self.order(trial), self.table))
            on_trials(1)
        return Measured.of(found, seconds=time.monotonic() - start)


@dataclass(frozen=True, eq=False)
class LookupResult:
    """What the searches on all tables came to, by the table's name.

    `settings` has the entropy filled in. `random` is what random search comes to, exactly: mean and standard deviation
    by measure. `interrupted` tells that some tables are missing.
    """

    settings: LookupSettings
    tables: Mapping[str, SearchTable]
    measured: Dict[str, Measured] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def protocol(self) -> Protocol:
        return protocol_of(self.settings)

    @property
    def random(self) -> Mapping[str, Mapping[str, Tuple[float, float]]]:
        return {name: exact_random_search(self.tables[name], self.protocol) for name in self.measured}


def protocol_of(settings: LookupSettings) -> Protocol:
    """What to measure, with the paper's values where nothing was said."""
    tolerance = BLEU_TOLERANCE if settings.objectives == (BLEU,) else 0.0
    budget = BUDGET if len(settings.objectives) == 1 else FRONT_BUDGET
    return Protocol(
        tolerance=tolerance if settings.tolerance is None else settings.tolerance, budget=settings.budget or budget
    )


def build_searcher(params: Mapping[str, Any]) -> Searcher:
    """Build a searcher from its name and options.

    Raises:
        ConfigError: where its name or an entry is unknown, or a value cannot work.
    """
    try:
        return Searcher.from_params(Params(dict(params)))
    except (ConfigurationError, TypeError) as error:
        raise ConfigError(f"--searcher {params['type']}: {plainly(error)}") from error


def look_up(
    settings: LookupSettings, *, on_trials: Callable[[int, int], None] = lambda number, total: None
) -> LookupResult:
    """Search all tables, each as often as the settings say. An interrupt (`KeyboardInterrupt`) ends it with the tables
    that are done.

    Args:
        on_trials: called with the number of searches since the last call, and with how many there are in all.

    Raises:
        FiestaError: where a setting or a table is wrong.
    """
    settings = replace(settings, entropy=fresh_entropy() if settings.entropy is None else settings.entropy)
    searcher = build_searcher(settings.searcher_params())
    columns = Columns(settings.inputs, settings.objectives)
    tables = {table.name: table for table in open_tables(Path(settings.table), columns)}
    lookups = [
        Lookup(table, searcher, protocol_of(settings), settings.entropy or 0, settings.batch_size)
        for table in tables.values()
    ]
    result = LookupResult(settings, tables)
    total = settings.trials * len(lookups)
    try:
        for lookup in lookups:
            result.measured[lookup.table.name] = lookup.run(settings.trials, lambda number: on_trials(number, total))
    except KeyboardInterrupt:
        return replace(result, interrupted=True)
    return result
