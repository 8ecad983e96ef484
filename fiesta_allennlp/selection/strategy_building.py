"""Builds and checks the strategy that the options name."""

from typing import Any, Callable, Dict, List, Sequence, TypeVar

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.registry import build, import_package
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.settings import ChoiceSettings
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.fixed_budget import FixedBudget
from fiesta_allennlp.strategies.minimising import Minimising

Built = TypeVar("Built")


def build_strategy(
    choice: ChoiceSettings, names: List[str], *, has_counts: bool = False, minimise: bool = False
) -> Strategy:
    """Build the strategy with its belief, and check it for these candidates. `has_counts` says whether runs report
    counts of right and wrong answers, which some beliefs need."""
    params = choice.strategy_params()
    _check_kind(params)
    try:
        strategy = build(Strategy, params)
    except ConfigError as error:
        raise ConfigError(f"--strategy {params['type']} with --belief {params['belief']['type']}: {error}") from error
    strategy.check(names)
    if choice.on_official_splits and strategy.belief.pairs_splits:
        raise ConfigError(
            f"--belief {params['belief']['type']} compares scores on splits that candidates share, but with "
            "--splits official only the seeds vary, and runs share no random splits. Leave --belief out for "
            f"{choice.default_belief}, or give student_t."
        )
    if strategy.belief.needs_counts and (minimise or not has_counts):
        raise ConfigError(
            f"--belief {params['belief']['type']} needs counts of right and wrong answers in documents, but here "
            f"every run reports {'a score to minimise' if minimise else 'only a score'}. Choose another belief, "
            f"such as {choice.default_belief}."
        )
    return Minimising(strategy) if minimise else strategy


def importing(packages: Sequence[str], build: Callable[[], Built]) -> Built:
    """Call `build`; if it fails, import these packages and call it again."""
    try:
        return build()
    except ConfigError:
        if not packages:
            raise
    import_packages(packages, whence=", which the selection was started with,")
    return build()


def not_importing(packages: Sequence[str], build: Callable[[], Built]) -> Built:
    """Call `build` for commands that only read: they import no package because a store names it, but the error names
    it."""
    try:
        return build()
    except ConfigError as error:
        if not packages:
            raise
        named = " ".join(f"--include-package {package}" for package in packages)
        raise ConfigError(
            f"{error} The selection was started with {named}. Commands that only read a selection do not import "
            "code for it unless you add this option to the command."
        ) from error


def import_packages(packages: Sequence[str], *, whence: str = "") -> None:
    """Import the packages of `--include-package`. `whence` names their origin in a message."""
    for package in packages:
        try:
            import_package(package)
        except ImportError as error:
            raise ConfigError(
                f"--include-package {package}{whence} cannot be imported: {error}. Start from a directory where it "
                "can be imported, or add its directory to PYTHONPATH."
            ) from error


def _check_kind(params: Dict[str, Any]) -> None:
    """Refuse an option that belongs to the other kind of strategy."""
    name = params["type"]
    if name not in Strategy.available():
        return
    fixed_budget = issubclass(Strategy.by_name(name), FixedBudget)
    if fixed_budget and "budget" not in params:
        raise ConfigError(f"--strategy {name} spends a budget: set the number of runs with --budget N.")
    of_confidence = ("confidence", "margin", "max_evaluations", "stop")
    wrong = [key for key in of_confidence if key in params] if fixed_budget else []
    if wrong:
        raise ConfigError(
            f"{flag(wrong[0])} cannot be combined with --strategy {name}, which spends a budget. Leave it out."
        )
    if not fixed_budget and "budget" in params:
        raise ConfigError(
            f"--budget cannot be combined with --strategy {name}, which stops at a confidence. Limit it with "
            "--max-evaluations, or choose sequential_halving or non_adaptive_fb."
        )
