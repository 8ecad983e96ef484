"""What earlier and later ends of hopeless selections cost on the 306 real problems, as a table in Markdown.

    OMP_NUM_THREADS=1 python scripts/benchmarks/giving_up.py --selections 12

A selection that is simulated to the end of the most patient rule contains those of all others: they end where the
probability of deciding first falls below their threshold. So all rows have the same draws, with a seed that is drawn
and printed. Some rules also divide the remaining runs by this probability, which is the price of a winner. The last row
ends a selection where choosing the leader costs less than a hundredth of the run-to-run sd.
"""

import secrets
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Dict, Generator, Iterator, List, Sequence, Tuple

import numpy as np
from calibration import CONFIDENCE
from common import make_parser, print_table, show
from published_scores import TIE, read_problems
from real_problems import SeededProblem, group_problems
from real_results import SETS, TUNED

from fiesta_allennlp.core.records import History
from fiesta_allennlp.strategies import stopping_rules
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.stopping_rules import find_lead, predictive_power
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.side_by_side import run_side_by_side
from fiesta_allennlp.tables.simulator import Simulator, prepare_simulator

THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
LEAST_LOSS = 0.01
"""In run-to-run sds."""

CHANCE, PRICES = stopping_rules.MIN_POWER, (300, 400, 500, 600, 800)
"""The chance below which the rule gives up, if each further winner also costs more than so many runs."""

LOSS_RULE = f"loss below {LEAST_LOSS:g} sd"
RULES = (
    *(f"chance below {threshold:g}" for threshold in THRESHOLDS),
    *(f"{CHANCE:g}, over {price} runs a winner" for price in PRICES),
    LOSS_RULE,
)
HEADINGS = ("gives up at", "runs: mean, median", "names a winner", "wrong, of named", "runs saved per winner lost")


@dataclass(frozen=True)
class End:
    """The end of a selection by one rule."""

    num_runs: int
    is_named: bool
    is_wrong: bool = False


def rules_that_give_up(strategy: FixedConfidence, history: History) -> Iterator[str]:
    """Yield the rules that would end a selection after this history, in which nothing is pending."""
    decision, room = strategy.recommend(history), strategy.room(history)
    is_open = decision.stopped_by != "confidence" and not decision.lacking
    if decision.posterior is None or not (is_open and strategy.may_stop(history, decision)):
        return
    lead = find_lead(history, decision)
    chance = predictive_power(np.array(lead.size), lead.variances, lead.num_runs, CONFIDENCE, np.array(room))
    yield from (f"chance below {threshold:g}" for threshold in THRESHOLDS if chance < threshold)
    yield from (f"{CHANCE:g}, over {price} runs a winner" for price in PRICES if chance < min(CHANCE, room / price))
    loss = decision.posterior.expected_loss(history.active.index(str(decision.best)))
    if loss is not None and loss < LEAST_LOSS * strategy.belief.noise_sd(history):
        yield LOSS_RULE


def find_ends(
    seeded: SeededProblem, replayer: Simulator, strategy: FixedConfidence, repetition: int
) -> Generator[History, None, Dict[str, End]]:
    """Yield each history of a selection, and return its end by every rule."""
    ends: Dict[str, End] = {}
    for history in replayer.iterate_histories(replayer.draw(repetition), repetition):
        yield history
        for rule in rules_that_give_up(strategy, history):
            ends.setdefault(rule, End(len(history.evaluations), is_named=False))
    decision = strategy.recommend(history)
    is_named = decision.stopped_by == "confidence"
    is_wrong = is_named and seeded.problem.losses[str(decision.best)] > TIE
    last = End(len(history.evaluations), is_named, is_wrong)
    return {rule: ends.get(rule, last) for rule in RULES}


def select_patiently(problems: Sequence[SeededProblem], num_selections: int) -> List[Dict[str, End]]:
    """Simulate selections of problems with equally many candidates side by side, by the most patient rule."""
    stopping_rules.MIN_POWER, stopping_rules.MAX_RUNS_PER_WINNER = THRESHOLDS[0], 1
    settings = ReplaySettings(scores="", confidence=CONFIDENCE)
    replayers = [prepare_simulator(replace(settings, seed=seeded.seed), seeded.problem) for seeded in problems]
    strategy = replayers[0].strategy
    assert isinstance(strategy, FixedConfidence)
    runs = [
        find_ends(seeded, replace(replayer, strategy=strategy), strategy, repetition)
        for seeded, replayer in zip(problems, replayers, strict=True)
        for repetition in range(num_selections)
    ]
    return run_side_by_side(strategy, runs)


def rows(selections: Sequence[Dict[str, End]]) -> Iterator[Tuple[str, ...]]:
    """Yield the row of each rule, compared with the most patient one."""
    total = len(selections)
    patient = [ends[RULES[0]] for ends in selections]
    for rule in RULES:
        ends = [by_rule[rule] for by_rule in selections]
        num_runs, named = [end.num_runs for end in ends], sum(end.is_named for end in ends)
        num_lost = sum(end.is_named for end in patient) - named
        num_saved = sum(end.num_runs for end in patient) - sum(num_runs)
        yield (
            rule,
            f"{np.mean(num_runs):.1f}, {np.median(num_runs):.0f}",
            f"{named / total:.3f}",
            f"{sum(end.is_wrong for end in ends) / max(named, 1):.3f}",
            f"{num_saved / num_lost:.0f}" if num_lost else "-",
        )


def main(arguments: Sequence[str] = ()) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--selections", type=int, default=12, help="selections of each problem")
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    args = parser.parse_args(arguments or None)
    seed = secrets.randbits(32)
    show(f"seed {seed}")
    groups = group_problems(read_problems(SETS[TUNED].scores), args.selections, seed)
    with ProcessPoolExecutor(args.processes) as pool:
        futures = [pool.submit(select_patiently, group, args.selections) for group in groups]
        print_table(HEADINGS, rows([ends for future in futures for ends in future.result()]))


if __name__ == "__main__":
    main()
