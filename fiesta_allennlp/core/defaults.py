"""The defaults that code and help texts share. They import nothing, so that help is fast."""

STRATEGY, BUDGET_STRATEGY = "top_two", "sequential_halving"
BELIEF, OFFICIAL_SPLITS_BELIEF = "split_paired", "unpaired"
STOPPING_RULE = "early_looks"
CONFIDENCE = 0.95
MAX_EVALUATIONS_PER_CANDIDATE = 50
MAX_FAILURES = 3
METRIC = "macro_f1"
