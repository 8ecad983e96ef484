"""The defaults that code and help texts share. They import only the standard library, so that help is fast."""

import os

STRATEGY, BUDGET_STRATEGY = "top_two", "sequential_halving"
BELIEF = "moderated_t"
STOPPING_RULE = "early_looks"
CONFIDENCE = 0.95
MAX_EVALUATIONS_PER_CANDIDATE = 50
MAX_FAILURES = 3
NUM_FRESH_RUNS, MIN_FRESH_RUNS = 10, 3
POWER = 0.8
METRIC = "macro_f1"


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
