"""Builds and checks the strategy that the options name."""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar

from fiesta_allennlp.choosing.fixed_budget import FixedBudget
from fiesta_allennlp.choosing.strategy import RunLimit, Strategy
from fiesta_allennlp.core.errors import ConfigError, OptionError
from fiesta_allennlp.core.registry import build, import_package
from fiesta_allennlp.core.settings.choice_settings import ChoiceSettings
from fiesta_allennlp.core.settings.defaults import BELIEF
from fiesta_allennlp.core.settings.options import deciding_options, flag

Built = TypeVar("Built")


def build_strategy(
    choice: ChoiceSettings,
    names: List[str],
    *,
    has_counts: bool = False,
    minimise: bool = False,
    run_limit: Optional[RunLimit] = None,
) -> Strategy:
    """Build the strategy with its belief, and check it for these candidates. `has_counts` says whether runs report
    counts of right and wrong answers, which some beliefs need, and `run_limit` limits the runs of each candidate."""
    params = choice.strategy_params()
    _check_strategy_options(params, choice)
    try:
        strategy = build(Strategy, params)
    except ConfigError as error:
        raise ConfigError(f"--strategy {params['type']} with --belief {params['belief']['type']}: {error}") from error
    with translated_option_errors(choice):
        strategy.check(names)
    if strategy.belief.needs_counts and (minimise or not has_counts):
        reason = "needs counts of right and wrong answers, which these runs do not report"
        raise ConfigError(f"--belief {params['belief']['type']} {reason}. Use --belief {BELIEF}.")
    strategy.run_limit = run_limit
    return strategy


@contextmanager
def translated_option_errors(choice: ChoiceSettings) -> Iterator[None]:
    """Begin an error of a strategy with the option as it is typed. If the limit is too low, add what needs fewer
    runs."""
    try:
        yield
    except OptionError as error:
        remedy = ""
        if error.option == "max_evaluations":
            limit = choice.strategy_params()["max_evaluations"]
            remedy = f" Raise it, or use --budget {limit}, or --stop bayesian, which needs fewer runs."
        raise ConfigError(f"{flag(error.option)} {error.rule}{remedy}") from error


def build_with_packages(packages: Sequence[str], build: Callable[[], Built]) -> Built:
    """Call `build`; if it fails, import these packages and call it again."""
    try:
        return build()
    except ConfigError:
        if not packages:
            raise
    for package in packages:
        import_package(package)
    return build()


@contextmanager
def packages_named_in_errors(packages: Sequence[str]) -> Iterator[None]:
    """Name the packages of a stored selection where an error may come from not importing them: whoever reads it did not
    write it."""
    try:
        yield
    except ConfigError as error:
        if not packages:
            raise
        options = " ".join(f"--include-package {package}" for package in packages)
        raise ConfigError(f"{error} The selection uses code of its author: if you trust it, add {options}.") from error


def _check_strategy_options(params: Dict[str, Any], choice: ChoiceSettings) -> None:
    """Refuse an option that belongs to the other kind of strategy, and a missing budget."""
    name = params["type"]
    strategy_class = Strategy.find(name)
    if strategy_class is not None:
        has_budget = issubclass(strategy_class, FixedBudget)
        forbidden_options = deciding_options(choice, "confidence" if has_budget else "budget")
        if wrong_options := [key for key in forbidden_options if key in params]:
            option = "--budget" if has_budget else f"--strategy {name}"
            raise ConfigError(f"{flag(wrong_options[0])} cannot be combined with {option}. Use one or the other.")
        if has_budget and "budget" not in params:
            raise ConfigError(f"--strategy {name} needs --budget N, the total number of runs.")
