"""The options that several commands have in common."""

import argparse
from typing import Any


def add_choosing(settings: Any) -> None:
    """How to choose the next evaluation, and when to stop: the fields of `ChoiceSettings`."""
    add_option(
        settings,
        "--strategy",
        "ttts (default), bts, thompson, non_adaptive_fc; with --budget sequential_halving "
        "(default) or non_adaptive_fb; or a JSON object with a `type`",
        metavar="NAME|JSON",
    )
    add_option(
        settings,
        "--belief",
        "split_paired (default) or student_t, either with logit_ before it; or a JSON object",
        metavar="NAME|JSON",
    )
    add_option(settings, "--confidence", "stop when the best is known with this probability (default 0.95)", type=float)
    add_option(settings, "--stop", "bayesian (default), or glr, which is strict; or a JSON object", metavar="NAME|JSON")
    add_option(settings, "--budget", "train so many times in all and name the best, in place of --confidence", type=int)
    add_option(
        settings,
        "--margin",
        "be content with a candidate whose mean is within this of the best (default 0)",
        type=float,
    )
    add_option(
        settings,
        "--max-evaluations",
        "give up undecided after so many in all (default 50 per candidate)",
        type=int,
    )


def add_splits(group: Any) -> None:
    add_option(
        group,
        "--splits",
        "shared (default): replicate k of every candidate has split k; independent: each evaluation has a split of its "
        "own, as in the paper",
        metavar="shared|independent",
    )


def add_option(group: Any, flag: str, text: str, *, short: str = "", **kwargs: Any) -> None:
    """An option without a default, so that only what was typed is given."""
    group.add_argument(*filter(None, (short, flag)), default=argparse.SUPPRESS, help=text, **kwargs)
