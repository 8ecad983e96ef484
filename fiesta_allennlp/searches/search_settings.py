"""The options of `fiesta search`: the options of a selection, its second stage, and of the first stage."""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Optional, Tuple

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.selection.options import flag, option
from fiesta_allennlp.selection.settings import CONFIG_METAVAR, to_config
from fiesta_allennlp.trainings.settings import Settings, TrainingSettings

if TYPE_CHECKING:
    from fiesta_allennlp.selection.store import Meta

SCREENING_GROUP = "Screening"
DEFAULT_SEARCHER, TWO_OBJECTIVE_SEARCHER = "gp_ei", "gp_ehvi"

POINTS_PER_CONFIG = 5
"""The number of points drawn for each config that runs."""

MAX_DRAWN_POINTS = 1000
SECOND_OBJECTIVES = ("seconds",)
MIN_FINALISTS, MAX_FINALISTS = 2, 8
CONFIGS_PER_FINALIST = 3
"""The number of screened configs for each finalist by default, within these bounds."""


screening_option = partial(option, group=SCREENING_GROUP)


@dataclass(frozen=True)
class SearchSettings(TrainingSettings):
    """The settings of `fiesta search`. Names and defaults are those of the command's options."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCREENING_GROUP, *TrainingSettings.GROUPS)

    template: str = option(
        "",
        "a config for `allennlp train` that reads the values of the space with std.extVar; or any config, if the "
        "names of the space are paths of keys such as model.dropout",
        metavar="TEMPLATE.jsonnet",
        is_fixed=True,
    )
    space: Any = option(
        None,
        "the search space as JSON, or a space of allennlp-optuna; not used with --points",
        metavar="SPACE.json",
        is_fixed=True,
    )
    searcher: Any = option(
        None,
        f"method that chooses the next config to screen: {DEFAULT_SEARCHER} (default), graph_ei, graph_eif or random; "
        f"with --second-objective: {TWO_OBJECTIVE_SEARCHER} (default), graph_ehvi or random; or a JSON object with a "
        "`type`",
        group=SCREENING_GROUP,
        metavar=CONFIG_METAVAR,
    )
    configs: Optional[int] = screening_option(
        None, "number of configs to screen, with one run each (default: all points of --points)", least=3
    )
    finalists: Optional[int] = screening_option(
        None,
        f"number of the best screened configs to select among (default: a third of them, at most {MAX_FINALISTS})",
        least=MIN_FINALISTS,
    )
    second_objective: Optional[str] = screening_option(
        None,
        "seconds: look for configs with a high score in little time; the finalists are the configs that no other "
        "config beats in both",
        choices=SECOND_OBJECTIVES,
        is_fixed=True,
    )
    runs: Optional[int] = screening_option(
        None, "total number of runs in both stages, instead of --configs, --finalists and --budget", least=1
    )
    pool: Optional[int] = screening_option(
        None,
        "number of points to draw from the space for the searcher to choose among (default: "
        f"{POINTS_PER_CONFIG} per config to screen, at most {MAX_DRAWN_POINTS:,})",
        least=3,
        is_fixed=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.template and (self.space is None) == (self.points is None):
            raise ConfigError("a search needs either a SPACE.json or --points FILE.jsonl.")
        if self.points is not None and self.pool is not None:
            raise ConfigError("--pool is for points drawn from a space, so it cannot be combined with --points.")
        if self.runs is not None:
            conflicts = ("configs", "finalists", "budget", "confidence", "strategy")
            conflict = next((name for name in conflicts if getattr(self, name) is not None), None)
            if conflict is not None:
                raise ConfigError(
                    f"--runs sets the runs of both stages, so it cannot be combined with {flag(conflict)}."
                )
            allocate_runs(self.runs)
        if self.template and self.configs is None and self.runs is None and self.points is None:
            raise ConfigError("set the number of configs to screen with --configs N, or of all runs with --runs N.")
        if self.pool is not None and self.pool < (self.num_configs or 0):
            raise ConfigError(f"--pool must be at least {self.num_configs}, the number of configs, but is {self.pool}.")
        if self.finalists is not None and self.configs is not None and self.finalists > self.configs:
            raise ConfigError(f"--finalists is {self.finalists} but --configs is only {self.configs}.")

    def searcher_params(self) -> Dict[str, Any]:
        default = DEFAULT_SEARCHER if self.second_objective is None else TWO_OBJECTIVE_SEARCHER
        return to_config(self.searcher or default, "--searcher")

    @property
    def num_configs(self) -> Optional[int]:
        """The number of screened configs; None for all points."""
        return self.configs if self.runs is None else allocate_runs(self.runs).num_configs

    def num_finalists(self, num_screened: int) -> int:
        if self.runs is not None:
            return allocate_runs(self.runs).num_finalists
        return self.finalists or max(MIN_FINALISTS, min(MAX_FINALISTS, num_screened // CONFIGS_PER_FINALIST))

    @property
    def num_drawn_points(self) -> int:
        """The number of points drawn from the space."""
        num_configs = self.num_configs or 0
        return max(num_configs, self.pool or min(POINTS_PER_CONFIG * num_configs, MAX_DRAWN_POINTS))

    # The first stage. Its one candidate is the template, and its runs never look at the test set.

    @property
    def division(self) -> Division:
        keeps_test = self.score == "test"
        return replace(super().division, scored="validation", keeps_test=keeps_test, has_validation=True)

    @property
    def keeps_models(self) -> bool:
        return False

    def second_stage_settings(self) -> Settings:
        """Return the settings of the second stage, without its candidates."""
        values = {f.name: getattr(self, f.name) for f in fields(TrainingSettings)}
        budget = self.budget if self.runs is None else allocate_runs(self.runs).num_selection_runs
        return Settings(**{**values, "points": None, "budget": budget})


def stored_search(meta: "Meta") -> SearchSettings:
    """Return the settings of a search from the store of its first stage."""
    return meta.to_settings(SearchSettings)


SCREENING_SHARE = 4 / 5
MIN_RUNS = 12


@dataclass(frozen=True)
class RunAllocation:
    """`num_configs` run once each. The best `num_finalists` of them then share `num_selection_runs` further runs."""

    num_configs: int
    num_finalists: int
    num_selection_runs: int


def allocate_runs(num_runs: int) -> RunAllocation:
    """Return a share that is near the best one on three tasks; see `docs/searching.md`. Sequential halving of m
    finalists, a power of two, needs m log2(m) runs."""
    if num_runs < MIN_RUNS:
        raise ConfigError(f"--runs must be at least {MIN_RUNS} for two stages but is {num_runs}.")
    num_configs = round(SCREENING_SHARE * num_runs)
    num_rounds = 1
    while 2 ** (num_rounds + 1) * (num_rounds + 1) <= num_runs - num_configs:
        num_rounds += 1
    return RunAllocation(num_configs, 2**num_rounds, num_runs - num_configs)
