"""The options of `fiesta replay`, `fiesta next` and `fiesta plan`, each as one record."""

import argparse
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterable, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core import choice_settings, options
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, join_some
from fiesta_allennlp.core.texts import join_names, split_names
from fiesta_allennlp.selecting.objections import UNITS, UNSEEDED, allow_option

SCORES_GROUP = "Scores"
_scores = partial(options.option, group=SCORES_GROUP)

COLUMNS = ("candidate", "task", "split", "seed", "score", "metric", "state", "error", "seconds")
"""The columns of a table. Candidates are compared by the average over the tasks. `state` says whether a run has
finished, `error` why it has no score, and `seconds` how long it took."""


UNSCALED = "none"
"""The value of `--scale` that leaves the scores as they are."""


def parse_columns(text: str) -> Dict[str, str]:
    """Read `candidate=model+lr,score=test_f1`. A pair with a comma in its name is in double quotes."""
    header_by_column: Dict[str, str] = {}
    for pair in split_names(text):
        name, equals, header = (part.strip() for part in pair.partition("="))
        if name not in COLUMNS or not equals or name in header_by_column:
            raise argparse.ArgumentTypeError(
                f"must be pairs such as candidate=model,score=test_f1, each name once, with names from "
                f"{', '.join(COLUMNS)}, but got '{text}'. Put a pair with a comma in double quotes."
                f"{did_you_mean(name, COLUMNS)}"
            )
        header_by_column[name] = header
    return header_by_column


def parse_names(text: str) -> Tuple[str, ...]:
    """Read names that are separated by commas; one at the end separates nothing."""
    return tuple(filter(None, split_names(text)))


names_option = partial(options.option, (), group=SCORES_GROUP, metavar="A,B,...", parse=parse_names)


def done_note(done: Sequence[str]) -> Tuple[str, ...]:
    """Note which candidates get no further runs."""
    verb = "gets" if len(done) == 1 else "get"
    return (f"{join_some(done)} {verb} no further runs, so P(best) rests on the existing scores.",) if done else ()


@dataclass(frozen=True)
class TableSettings(options.SettingsRecord):
    """The settings of every command that reads a table of scores: they say what the table means."""

    files: Tuple[str, ...] = options.option(
        (), "more files of the table; files without a candidate column have one candidate each", metavar="FILE"
    )
    columns: Optional[Mapping[str, str]] = _scores(
        None,
        f"column names in the table, such as candidate=model+lr,task=dataset,seed=seed, with names from "
        f"{', '.join(COLUMNS)}; several columns are joined with +, and an empty name says that there is none",
        metavar="NAME=COLUMN,...",
        parse=parse_columns,
    )
    score: Optional[str] = _scores(
        None,
        "column of the score; --score=-NAME minimizes it. A name with braces reads many columns: "
        "'split{split}_test_score', or '{candidate} - eval/f1'",
        metavar="COLUMN",
        sought_as={"--metric": "--score NAME"},
    )
    where: Tuple[str, ...] = _scores(
        (),
        "use only rows with one of these values, such as task=iris; step=last keeps the largest step of each run. "
        "Repeat it for more columns",
        metavar="COLUMN=A,B",
        is_repeated=True,
        sought_as={"--candidates": "--where candidate=A,B", "--max-hours": "fiesta plan FILE --max-hours N"},
    )
    wide: Tuple[str, ...] = names_option("columns that are candidates; the rows are splits")
    parse: Tuple[str, ...] = _scores(
        (),
        "take columns out of the text of a column, such as 'Name={candidate}-lr{lr}-seed{seed}'",
        metavar="COLUMN=PATTERN",
        is_repeated=True,
    )
    finished: Tuple[str, ...] = names_option("words of the column state that mean success; the others mean failure")
    ignore: Tuple[str, ...] = names_option("columns that do not matter, although they differ within a candidate")
    scale: Optional[str] = _scores(
        None,
        "with tasks: none, if scores are averaged as they are although the noise of tasks differs over 4 times; "
        "or sd=FILE, a CSV file with the columns task and sd, by which scores are divided",
        metavar="none|sd=FILE",
    )
    allow: Tuple[str, ...] = allow_option(SCORES_GROUP, (UNITS, UNSEEDED))
    minimise: Optional[bool] = _scores(
        None,
        "lower scores of a table are better, as with -NAME in its metric column; --no-minimise maximizes "
        "even a metric such as error",
    )
    min_score: Optional[float] = choice_settings.min_score_option(SCORES_GROUP)
    done: Tuple[str, ...] = names_option(
        "candidates that get no more runs, such as a published model; only their existing scores count"
    )


BROUGHT_GROUP = "Runs that exist already"


@dataclass(frozen=True)
class BroughtSettings(options.SettingsRecord):
    """The options that say which runs exist already, and what their table means."""

    GROUPS: ClassVar[Tuple[str, ...]] = (BROUGHT_GROUP,)

    scores: Optional[str] = options.option(
        None,
        "take the runs of a table of scores into a new selection, as runs of the candidates of the same name; fiesta "
        "next --output writes one from any table",
        group=BROUGHT_GROUP,
        metavar="FILE",
    )


TABLE_OPTIONS = tuple(f.name for f in fields(TableSettings) if f.name not in ("min_score", "done"))
"""The settings that say what a table means. A selection has recorded its own."""


def _find_set(settings: Any, option_names: Iterable[str]) -> str:
    """Return the flag of the first of these options that is set; empty if none is."""
    return next((options.flag(name) for name in option_names if getattr(settings, name) not in (None, (), False)), "")


def refuse_table_options(settings: Any, option_names: Iterable[str], selection: Path) -> None:
    """Refuse options for tables of scores if the scores come from a selection."""
    if table_flag := _find_set(settings, option_names):
        reason = f"{selection} is a selection, which has recorded its own"
        raise ConfigError(f"{table_flag} is for tables of scores, but {reason}. Remove {table_flag}.")


def split_table_argument(settings: Mapping[str, Any], table: Any, name: str) -> Tuple[Dict[str, Any], Any]:
    """Return settings from Python as the command line gives them, and the content of the table if it is not in files.
    The setting `name` is the first file."""
    values = dict(settings)
    if isinstance(values.get("where"), Mapping):
        values["where"] = tuple(
            f"{column}={join_names(map(str, value)) if isinstance(value, (list, tuple)) else value}"
            for column, value in values["where"].items()
        )
    if isinstance(table, (str, Path)):
        return {**values, name: str(table)}, None
    if isinstance(table, (list, tuple)) and table and all(isinstance(file, (str, Path)) for file in table):
        return {**values, name: str(table[0]), "files": tuple(map(str, table[1:]))}, None
    return values, table


SEED_HELP = "the simulation (default: random, recorded)"


@dataclass(frozen=True)
class ReplaySettings(TableSettings, choice_settings.ChoiceSettings):
    """The settings of `fiesta replay`. `scores` is a file."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES_GROUP, options.SELECTION_GROUP, options.RESOURCES_GROUP)

    scores: str = options.option(
        "", "a table with the columns candidate, split, seed, score", metavar="SCORES.json|SCORES.csv"
    )
    preset: Optional[str] = choice_settings.preset_option()
    splits: str = choice_settings.splits_option(SCORES_GROUP)
    with_replacement: Optional[bool] = _scores(
        None, "draw scores of the table with replacement (default: only if they run out otherwise)"
    )
    done: Tuple[str, ...] = options.option((), "candidates that get no more runs in a plan")
    repetitions: int = options.resource_option(500, "number of selections to simulate", least=1)
    batch_size: int = options.resource_option(
        1, "runs per round; each round starts when the previous one has finished", least=1
    )
    seed: Optional[int] = choice_settings.seed_option(options.RESOURCES_GROUP, SEED_HELP)


@dataclass(frozen=True)
class NextSettings(TableSettings, choice_settings.ChoiceSettings):
    """The settings of `fiesta next`. `scores` is empty for rows from Python; `candidates` adds names without a row."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES_GROUP, options.SELECTION_GROUP, options.RESOURCES_GROUP)

    scores: str = options.option(
        "",
        "a table with the columns candidate, score and seed, plus split if runs use random splits. Leave the score "
        "empty until a run has finished; write `failed` if it ends without one",
        metavar="SCORES.csv|SCORES.json",
    )
    candidates: Tuple[str, ...] = names_option(
        "candidates without a row yet; put a name that contains a comma in double quotes"
    )
    preset: Optional[str] = choice_settings.preset_option()
    against: Optional[str] = options.selection_option(
        None,
        "a baseline: ask not for the best, but whether others are better, no worse, or worse by more than --max-drop",
        metavar="NAME",
    )
    prefer: Optional[str] = options.selection_option(
        None,
        "with --margin: name the cheapest candidate within it of the best with the target probability, by seconds, "
        "parameters, or a column of numbers",
        metavar="COLUMN",
    )
    max_drop: Optional[float] = options.selection_option(
        None, "with --against: the drop below the baseline that is allowed, in units of the score", metavar="X", least=0
    )
    splits: Optional[str] = choice_settings.splits_option(SCORES_GROUP, default=None)
    workers: int = options.resource_option(1, "number of runs to suggest", least=1)
    seconds: Optional[float] = options.resource_option(
        None, "duration of a run (default: the mean of the column seconds)", metavar="SECONDS", above=0
    )
    max_failures: int = choice_settings.max_failures_option()
    seed: int = options.resource_option(
        0, "random seed; the same table and seed give the same answer (default 0)", metavar="N", least=0
    )


PROBLEM_GROUP = "Problem"
DEFAULT_NUM_CANDIDATES = 2  # of a problem without a pilot, by default

MIN_REPEATS, MAX_REPEATS = 20, 200
"""The bounds of the default number of repetitions of a plan."""

_problem = partial(options.option, group=PROBLEM_GROUP)

MAX_NUMBER = 1e98
"""The largest number that describes a problem, so that no drawn score is above `MAX_SCORE` (1e100)."""

NUMBER_OPTIONS = ("gap", "sd", "split_sd", "candidates")
"""The settings that describe a problem without a pilot."""

PILOT_OPTIONS = ("done", "min_score", *TABLE_OPTIONS)


@dataclass(frozen=True)
class PlanSettings(TableSettings, choice_settings.ChoiceSettings):
    """The settings of `fiesta plan`. They override those that the selection in `source` was started with."""

    GROUPS: ClassVar[Tuple[str, ...]] = (PROBLEM_GROUP, SCORES_GROUP, options.SELECTION_GROUP, options.RESOURCES_GROUP)

    source: Optional[str] = options.option(
        None,
        "a pilot: the directory of a selection, or a table of scores. Omit it with --gap",
        metavar="DIR|SCORES.json|SCORES.csv",
    )
    gap: Optional[float] = _problem(None, "gap between the best mean and all others, in units of the score", least=0)
    sd: Optional[float] = _problem(None, "run-to-run standard deviation of a candidate's scores on one split", above=0)
    split_sd: Optional[float] = _problem(
        None, "standard deviation between splits, in addition to --sd (default 0)", least=0
    )
    candidates: Optional[int] = _problem(None, f"number of candidates (default {DEFAULT_NUM_CANDIDATES})", least=2)
    seconds: Optional[float] = _problem(None, "duration of a run (default: the pilot's)", metavar="SECONDS", above=0)
    belief: Any = options.restated_option(
        choice_settings.ChoiceSettings, "belief", help="model of the scores, as in a selection"
    )
    budget: Optional[int] = options.restated_option(choice_settings.ChoiceSettings, "budget", group="")
    preset: Optional[str] = choice_settings.preset_option()
    splits: Optional[str] = choice_settings.splits_option(PROBLEM_GROUP, default=None)
    workers: int = options.resource_option(1, "number of parallel runs", least=1)
    max_hours: Optional[float] = options.resource_option(
        None, "forecast what can be decided within this many hours from now", metavar="HOURS", above=0
    )
    repetitions: Optional[int] = options.resource_option(
        None, f"number of selections to simulate (default: {MIN_REPEATS} to {MAX_REPEATS}, in 5 to 10 seconds)", least=1
    )
    seed: Optional[int] = choice_settings.seed_option(options.RESOURCES_GROUP, SEED_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (*NUMBER_OPTIONS, "seconds", "max_hours"):
            value = getattr(self, name)
            if value is not None and not value <= MAX_NUMBER:
                raise ConfigError(f"{options.flag(name)} must be at most {MAX_NUMBER:g} but got {value:g}.")
            if value is not None and name in NUMBER_OPTIONS and self.source is not None:
                problem = f"{options.flag(name)} cannot be combined with {self.source}, which already defines it"
                raise ConfigError(f"{problem}. Use only one.")
        if self.source is None and (self.gap is None or self.sd is None):
            raise ConfigError(
                "pass the directory of a selection, a table of scores, or --gap and --sd, such as --gap 0.01 --sd 0.03 "
                "--candidates 4."
            )
        pilot_flag = _find_set(self, PILOT_OPTIONS)
        if self.source is None and pilot_flag:
            raise ConfigError(f"{pilot_flag} needs a table of scores or a selection. Pass one, or remove {pilot_flag}.")
        if self.budget is not None:
            raise ConfigError(f"budget {self.budget}: a plan is for a target confidence. Remove the budget.")
        if self.split_sd and self.splits == choice_settings.OFFICIAL:
            raise ConfigError(
                f"--split-sd {self.split_sd:g} cannot be combined with --splits official, where all runs share one "
                "split. Use only one."
            )
