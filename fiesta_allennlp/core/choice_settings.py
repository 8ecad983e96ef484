"""The options that every family has in common, and how layers of given values are merged."""

import argparse
import json
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Collection, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from fiesta_allennlp.core import files, options
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.options import SELECTION_GROUP, deciding_options, option, rule_option, selection_option

STRATEGY, BUDGET_STRATEGY = "top_two", "sequential_halving"
BELIEF = "moderated_t"
STOPPING_RULE = "early_looks"
CONFIDENCE = 0.95
MAX_EVALUATIONS_PER_CANDIDATE = 50
MAX_FAILURES = 3
MIN_FRESH_RUNS, POWER = 3, 0.8
"""Defaults, which help texts and code share."""

SHARED, INDEPENDENT, OFFICIAL = "shared", "independent", "official"
SPLITS = (SHARED, INDEPENDENT, OFFICIAL)

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"strategy": "ttts", "belief": "student_t", "stop": "bayesian", "splits": INDEPENDENT}
}
"""Values of options by preset, where a command has the option."""

CONFIG_METAVAR = "NAME|JSON"
"""The placeholder for a registered name, or a JSON object with a `type`."""


def parse_margin(text: str) -> Union[float, str]:
    """Read a number, or a share of the run-to-run sd."""
    try:
        return text if "sd" in text else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, or a share such as 0.25sd, but got '{text}'") from None


ChoiceSettingsType = TypeVar("ChoiceSettingsType", bound="ChoiceSettings")


@dataclass(frozen=True)
class ChoiceSettings(options.SettingsRecord):
    """Settings that decide which candidate runs next and when a selection ends.

    `strategy`, `belief` and `stop` are registered names or JSON objects with a `type`. A subclass adds options as
    fields made with `option`, and lists all headings in `GROUPS`.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (SELECTION_GROUP,)
    default_stop: ClassVar[str] = STOPPING_RULE

    strategy: Any = rule_option(
        f"sampling rule: {STRATEGY} (default), ttts, bts, thompson or non_adaptive_fc; with --budget: "
        f"{BUDGET_STRATEGY} (default) or non_adaptive_fb; or JSON with a `type`",
        metavar=CONFIG_METAVAR,
        decides="both",
    )
    belief: Any = rule_option(
        f"model of the scores: {BELIEF} (default), student_t or logit_student_t (both as in the paper); or a JSON "
        "object",
        metavar=CONFIG_METAVAR,
        decides="both",
    )
    confidence: Optional[float] = rule_option(
        f"target confidence: stop once P(best) reaches it and the stopping rule agrees (default {CONFIDENCE})",
        is_rare=False,
    )
    stop: Any = rule_option(
        f"stopping rule: {STOPPING_RULE} (default), bayesian (as in the paper) or glr (guaranteed error rate); or JSON",
        metavar=CONFIG_METAVAR,
    )
    budget: Optional[int] = rule_option(
        "make at most this many runs, then select the leader, whatever the confidence", decides="budget", is_rare=False
    )
    margin: Any = rule_option(
        "accept a candidate whose mean is within MARGIN of the best, in units of the score (default 0) or of the "
        "run-to-run sd, such as 0.25sd",
        metavar="MARGIN",
        parse=parse_margin,
    )
    min_runs: Optional[int] = rule_option(
        "require N runs of the winner and of its closest rival, for models that collapse at times (default 0)",
        metavar="N",
        least=0,
    )
    max_evaluations: Optional[int] = rule_option(
        f"stop after this many runs (default {MAX_EVALUATIONS_PER_CANDIDATE} per candidate)"
    )

    @classmethod
    def from_layers(cls: Type[ChoiceSettingsType], *layers: Mapping[str, Any]) -> ChoiceSettingsType:
        """Make the settings from layers of given values, as `merge_settings` merges them."""
        return cls(**merge_settings(*layers, settings_class=cls))

    @property
    def on_official_splits(self) -> bool:
        """True if only seeds vary between runs, so that no two runs share a random split."""
        return getattr(self, "splits", None) == OFFICIAL

    @property
    def set_by_preset(self) -> Dict[str, Any]:
        """The options that have their values from the preset, because no other value was set."""
        preset = PRESETS.get(getattr(self, "preset", None) or "", {})
        return {name: value for name, value in preset.items() if getattr(self, name, None) == value}

    def decision_options(self) -> Dict[str, Any]:
        """Return everything that decides which candidate runs next and when the selection ends, by option, defaults
        included. None stands for no limit, and for the default of `max_evaluations`."""
        params = self.strategy_params()
        names = deciding_options(self, "confidence", "budget", "both")
        named_options = {name: params.pop(name, None) for name in names if name != "strategy"}
        defaults: Dict[str, Any] = {"margin": 0.0, "stop": {"type": self.default_stop}}
        if named_options["budget"] is None:
            defaults["confidence"] = CONFIDENCE
        values = {name: defaults.get(name) if value is None else value for name, value in named_options.items()}
        run_options = {name: getattr(self, name, None) for name in ("max_hours", "min_score")}
        return {"strategy": params, **values, **run_options}

    def strategy_params(self) -> Dict[str, Any]:
        """Return the strategy as a config, with the options that belong to it filled in."""
        default = STRATEGY if self.budget is None else BUDGET_STRATEGY
        params = to_config(self.strategy or default, "--strategy")
        for name in ("stop", "belief"):
            if name in params:
                params[name] = to_config(params[name], f"--strategy: '{name}'")
        names = deciding_options(self, "confidence", "budget", "both")
        values = {name: getattr(self, name) for name in names if name not in ("strategy", "belief")}
        values["stop"] = None if self.stop is None else to_config(self.stop, "--stop")
        fill_options(params, values, "--strategy")
        params.setdefault("belief", to_config(self.belief or BELIEF, "--belief"))
        return params


def min_score_option(group: str) -> Any:
    """Declare the option `--min-score`, below this heading."""
    worse = "a run with a score below X (above X for a minimized metric) counts as failed, not as a score"
    return option(None, f"{worse}; the share that failed is reported", group=group, metavar="X", is_rare=True)


def splits_option(group: str, *, default: Optional[str] = SHARED) -> Any:
    """Declare the option `--splits`, below this heading."""
    help = (
        "shared (default): run k of every candidate uses split k; independent: every run draws its own split, as in "
        "the paper; official: the config's own training, validation and test sets, so only seeds vary"
    )
    return option(default, help, group=group, choices=SPLITS, is_fixed=True)


def preset_option() -> Any:
    help = (
        "paper: the procedure of the FIESTA paper, --strategy ttts --belief student_t --stop bayesian --splits "
        "independent, or with --budget sequential_halving; options that you set yourself override it"
    )
    return selection_option(None, help, choices=tuple(PRESETS), is_rare=True)


def seed_option(group: str, purpose: str = "a selection (default: random, saved in selection.json)") -> Any:
    help = f"master random seed, to repeat {purpose}"
    return option(None, help, group=group, metavar="N", least=0, is_fixed=True, is_rare=True)


def max_failures_option(candidate: str = "candidate", runs: str = "runs") -> Any:
    help = f"drop a {candidate} after this number of failed {runs}"
    return options.resource_option(MAX_FAILURES, help, least=1, is_rare=True)


class SelectionSettings(ChoiceSettings):
    """Settings of every selection that is kept in a directory; each family declares them in its own words."""

    max_failures: int
    seed: Optional[int]
    include_package: Tuple[str, ...]


def to_config(value: Any, option_name: str) -> Dict[str, Any]:
    """Return a registered name, a JSON text or an object as a config with a `type`."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value, object_pairs_hook=files.refuse_repeated_keys)
        except ValueError as error:
            raise ConfigError(f"{option_name}: '{value}' is not valid JSON: {error}") from error
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict) or "type" not in value:
        raise ConfigError(f"{option_name} must be a name or a JSON object with a 'type' but got {json.dumps(value)}.")
    return dict(value)


def fill_options(params: Dict[str, Any], values: Mapping[str, Any], option_name: str) -> None:
    """Fill given options into the config of their owner, which the option `option_name` gave. Refuse an entry that
    differs."""
    for name, value in values.items():
        if value is not None and params.setdefault(name, value) != value:
            given = f"{options.flag(name)} {value}"
            raise ConfigError(f"{given} contradicts '{name}': {params[name]} in {option_name}.")


def merge_settings(*layers: Mapping[str, Any], settings_class: Type[ChoiceSettings]) -> Dict[str, Any]:
    """Merge layers of given values of the class `settings_class`; later layers win.

    A budget removes the confidence of the layers below, with the strategy that goes with it, and vice versa. Another
    executor removes the options of the one below. A list for an option that is a text is joined by commas, and one text
    for an option that can be repeated is a list.
    """
    annotations, declarations = typing.get_type_hints(settings_class), dict(options.declared_options(settings_class))
    settings: Dict[str, Any] = {}
    for layer in _with_presets(layers, declarations):
        for new, other in (("budget", "confidence"), ("confidence", "budget")):
            others = [name for name in deciding_options(settings_class, other) if settings.get(name) is not None]
            for name in [*others, "strategy"] if new in layer and others else []:
                settings.pop(name, None)
        if "executor" in settings and layer.get("executor", settings["executor"]) != settings["executor"]:
            for name in ("executor_option", "cuda_devices"):
                settings.pop(name, None)
        options.check_setting_names(list(layer), settings_class)
        for name, value in layer.items():
            if declarations[name].is_repeated and isinstance(value, str):
                value = (value,)
            is_joined = isinstance(value, (list, tuple)) and options.base_type(annotations[name]) is str
            below = settings.get(name) if declarations[name].is_added else None
            settings[name] = ",".join(map(str, value)) if is_joined else options.list_to_tuple(value)
            if below:
                settings[name] = tuple(dict.fromkeys((*below, *settings[name])))
    return settings


def _with_presets(layers: Sequence[Mapping[str, Any]], names: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the layers, below each that names a preset the values of this preset for settings of these names."""
    for layer in layers:
        preset = PRESETS.get(layer.get("preset") or "", {})
        yield {name: value for name, value in preset.items() if name in names}
        yield layer


def settings_from_file(path: Path, settings_class: Type[ChoiceSettings]) -> Dict[str, Any]:
    """Return the values of a `--config` file: Jsonnet with the names of options, with dashes or underscores. The class
    `settings_class` checks whether they go together once flags are laid over them."""
    if not path.is_file():
        raise ConfigError(f"--config {path}: no such file.")
    values = files.read_jsonnet(path, label=f"--config {path}")
    if not isinstance(values, dict):
        raise ConfigError(f"--config {path} must be a Jsonnet object such as {{ metric: 'accuracy', workers: 2 }}.")
    try:
        typed_names = {name.replace("-", "_"): value for name, value in values.items()}
        settings = merge_settings(typed_names, settings_class=settings_class)
        options.check_values(settings, settings_class)
    except ConfigError as error:
        raise ConfigError(f"--config {path}: {error}") from error
    return settings
