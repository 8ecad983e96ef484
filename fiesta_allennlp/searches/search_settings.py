"""The options of `fiesta search`: the options of a selection, its second stage, and of the first stage."""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Optional, Tuple

from fiesta_allennlp.core.errors import ConfigError, full_command
from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.selection.options import RESOURCES_GROUP, SELECTION_GROUP, flag, option
from fiesta_allennlp.selection.settings import CONFIG_METAVAR, to_config
from fiesta_allennlp.trainings.settings import CLUSTER_GROUP, RAY_GROUP, SCORING_GROUP, SLURM_GROUP, Settings

if TYPE_CHECKING:
    from fiesta_allennlp.selection.store import Meta

FIRST_STAGE = "Screening"
SEARCHER, SEARCHER_OF_TWO = "gp_ei", "gp_ehvi"

CONFIGS_TO_POOL = 5
"""The number of points drawn for each config that runs."""

MOST_DRAWN = 1000
SECOND_OBJECTIVES = ("seconds",)
LEAST_FINALISTS, MOST_FINALISTS = 2, 8
CONFIGS_TO_FINALISTS = 3
"""The number of screened configs for each finalist by default, within these bounds."""


of_screening = partial(option, group=FIRST_STAGE)


@dataclass(frozen=True)
class SearchSettings(Settings):
    """The settings of `fiesta search`. Names and defaults are those of the command's options."""

    GROUPS: ClassVar[Tuple[str, ...]] = (
        FIRST_STAGE,
        SCORING_GROUP,
        SELECTION_GROUP,
        RESOURCES_GROUP,
        CLUSTER_GROUP,
        RAY_GROUP,
        SLURM_GROUP,
    )

    data: Tuple[str, ...] = option((), "not an option of a search")
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
        f"method that chooses the next config to screen: {SEARCHER} (default), graph_ei, graph_eif or random; with "
        f"--second-objective: {SEARCHER_OF_TWO} (default), graph_ehvi or random; or a JSON object with a `type`",
        group=FIRST_STAGE,
        metavar=CONFIG_METAVAR,
    )
    configs: Optional[int] = of_screening(
        None, "number of configs to screen, with one run each (default: all points of --points)", least=3
    )
    finalists: Optional[int] = of_screening(
        None,
        f"number of the best screened configs to select among (default: a third of them, at most {MOST_FINALISTS})",
        least=LEAST_FINALISTS,
    )
    second_objective: Optional[str] = of_screening(
        None,
        "seconds: look for configs with a high score in little time; the finalists are the configs that no other "
        "config beats in both",
        choices=SECOND_OBJECTIVES,
        is_fixed=True,
    )
    runs: Optional[int] = of_screening(
        None,
        "total number of runs in both stages, instead of --configs, --finalists and --budget",
        least=1,
    )
    pool: Optional[int] = of_screening(
        None,
        "number of points to draw from the space for the searcher to choose among (default: "
        f"{CONFIGS_TO_POOL} per config to screen, at most {MOST_DRAWN:,})",
        least=3,
        is_fixed=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates:
            raise ConfigError(f"'candidates' is an option of {full_command('select')}. Pass a template and a space.")
        if self.template and (self.space is None) == (self.points is None):
            raise ConfigError("a search needs either a SPACE.json or --points FILE.jsonl.")
        if self.runs is not None:
            rivals = ("configs", "finalists", "budget", "confidence", "strategy")
            rival = next((name for name in rivals if getattr(self, name) is not None), None)
            if rival is not None:
                raise ConfigError(f"--runs divides up all runs, so it cannot be combined with {flag(rival)}.")
            shared_out(self.runs)
        if self.template and self.configs is None and self.runs is None and self.points is None:
            raise ConfigError("set the number of configs to screen with --configs N, or of all runs with --runs N.")
        if self.pool is not None and self.pool < (self.num_configs or 0):
            raise ConfigError(f"--pool must be at least {self.num_configs}, the number of configs, but is {self.pool}.")
        if self.finalists is not None and self.configs is not None and self.finalists > self.configs:
            raise ConfigError(f"--finalists is {self.finalists} but --configs is only {self.configs}.")

    def searcher_params(self) -> Dict[str, Any]:
        default = SEARCHER if self.second_objective is None else SEARCHER_OF_TWO
        return to_config(self.searcher or default, "--searcher")

    @property
    def num_configs(self) -> Optional[int]:
        """The number of screened configs; None for all points."""
        return self.configs if self.runs is None else shared_out(self.runs).configs

    def num_finalists(self, num_screened: int) -> int:
        if self.runs is not None:
            return shared_out(self.runs).finalists
        return self.finalists or max(LEAST_FINALISTS, min(MOST_FINALISTS, num_screened // CONFIGS_TO_FINALISTS))

    @property
    def num_drawn(self) -> int:
        """The number of points drawn from the space."""
        num_configs = self.num_configs or 0
        return max(num_configs, self.pool or min(CONFIGS_TO_POOL * num_configs, MOST_DRAWN))

    # The first stage. Its one candidate is the template, and its runs never look at the test set.

    @property
    def division(self) -> Division:
        keeps_test = self.score == "test"
        return replace(super().division, scored="validation", keeps_test=keeps_test, has_validation=True)

    @property
    def keeps_models(self) -> bool:
        return False

    def selection(self) -> Settings:
        """Return the settings of the second stage, without its candidates."""
        plain = Settings(**{**{f.name: getattr(self, f.name) for f in fields(Settings)}, "points": None})
        return plain if self.runs is None else replace(plain, budget=shared_out(self.runs).decision)


def stored_search(meta: "Meta") -> SearchSettings:
    """Return the settings of a search from the store of its first stage."""
    return SearchSettings.from_layers(meta.settings or {})


SHARE_OF_SCREENING = 4 / 5
FEWEST_RUNS = 12


@dataclass(frozen=True)
class Shares:
    """`configs` run once each. The best `finalists` of them then share `decision` further runs."""

    configs: int
    finalists: int
    decision: int


def shared_out(runs: int) -> Shares:
    """Return a share that is near the best one on three tasks; see `docs/searching.md`. Sequential halving of m
    finalists, a power of two, needs m log2(m) runs."""
    if runs < FEWEST_RUNS:
        raise ConfigError(f"--runs must be at least {FEWEST_RUNS} for two stages but is {runs}.")
    configs = round(SHARE_OF_SCREENING * runs)
    rounds = 1
    while 2 ** (rounds + 1) * (rounds + 1) <= runs - configs:
        rounds += 1
    return Shares(configs, 2**rounds, runs - configs)
