"""The defaults that code and help texts share. They import nothing, so that help is fast."""

STRATEGY, STRATEGY_OF_BUDGET = "top_two", "sequential_halving"
BELIEF, BELIEF_OF_OFFICIAL_SPLITS = "split_paired", "unpaired"
STOP = "early_looks"
CONFIDENCE = 0.95
EVALUATIONS_PER_CANDIDATE = 50
MAX_FAILURES = 3
METRIC = "macro_f1"
