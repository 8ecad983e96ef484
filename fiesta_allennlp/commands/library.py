"""The commands as Python calls, for scripts and notebooks (`docs/api/calls.md`). No call ends the process."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from rich.console import Console

from fiesta_allennlp.candidates.points import plain_points
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.confirming.confirm_settings import ConfirmSettings
from fiesta_allennlp.confirming.confirmation import Confirmation
from fiesta_allennlp.core.console import PipeSafeConsole
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.options import RESOURCES_GROUP, takes_options
from fiesta_allennlp.documents.document_selection import DocumentSelection, DocumentsResult
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.reports import words  # noqa: F401  # it says how a result shows itself
from fiesta_allennlp.reports.coming_runs import simulate
from fiesta_allennlp.reports.confirmation_report import confirm as run_confirmation
from fiesta_allennlp.reports.progress import LiveTable
from fiesta_allennlp.running.fork_server import check_main_guard
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.session import StoredState, run_selection
from fiesta_allennlp.tables import table_settings
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.next_runs import next_runs as find_next_runs
from fiesta_allennlp.tables.simulation.planning import Simulation
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource, read_score_table
from fiesta_allennlp.tables.table_reader import read_brought_runs

Candidates = Union[Sequence[Union[str, Path]], Mapping[str, Union[str, Path]]]
Scores = Any
"""A table of scores: a file, a list of files, or its content as rows, a data frame or lists; for `replay` also a
`ScoreSource`."""


@takes_options(Settings)
def select(
    candidates: Candidates = (),
    *,
    directory: Union[str, Path],
    recover: bool = False,
    force: bool = False,
    progress: Optional[bool] = None,
    scores: Scores = None,
    **settings: Any,
) -> Result:
    """Select the best of several AllenNLP configs, or resume an interrupted selection.

    Ctrl-C, or an interrupt of a notebook's kernel, stops the runs. The call then returns the result so far, with
    `stopped_by` set to `interrupted`. In a script, make this call below `if __name__ == "__main__":`, because every run
    is a process of its own.

    Args:
        candidates: config files, or a mapping from names to files. A file's name without its ending names the
            candidate.
        directory: the directory that keeps all files of the selection.
        recover: the command's option `--recover`.
        force: the command's option `--force`.
        progress: whether to show progress (default: only on a terminal).
        scores: runs that exist already, as a table with the columns candidate, split, seed and score, or as rows: a new
            selection begins with them.
        settings: the command's other options by name, with underscores: `metric="accuracy", workers=2`. `strategy`,
            `belief`, `stop` and `executor` can be a name or a mapping with a `type`. `points` is a JSONL file or a list
            of mappings. Each mapping holds the values of one candidate of the given config.

    Raises:
        FiestaError: if a setting, a config, the data or the directory is invalid.
    """
    check_main_guard()
    options = _to_options(settings, candidates, candidates_option="candidates")
    path, beginning = Path(directory), None
    if scores is not None:
        table_values, content = table_settings.split_table_argument({}, scores, "scores")
        runs, _ = read_brought_runs(table_settings.BroughtSettings(**table_values), options, content)
        beginning = StoredState(brought=runs)
    modes: Dict[str, Any] = {"display": LiveTable, "recover": recover, "force": force}
    run_selection(TrainingSelection, options, path, console=_console(progress), beginning=beginning, **modes)
    return Result.read(path)


@takes_options(Settings, headings=[RESOURCES_GROUP])
def confirm(
    directory: Union[str, Path],
    *,
    runs: Optional[int] = None,
    against: Sequence[str] = (),
    seed: Optional[int] = None,
    recover: bool = False,
    progress: Optional[bool] = None,
    **resources: Any,
) -> Confirmation:
    """Confirm the winner of a selection with a number of fresh runs that is fixed beforehand, or resume that.

    Ctrl-C, or an interrupt of a notebook's kernel, stops the runs. The call then returns a result without
    `comparisons`. In a script, make this call below `if __name__ == "__main__":`.

    Args:
        directory: the directory of the selection, which need not be decided.
        runs: the fresh runs of each candidate (default 10).
        against: the rivals of the winner, or of the leader (default: the runner-up).
        seed: master random seed, to repeat a confirmation.
        recover: the command's option `--recover`.
        progress: whether to show progress (default: only on a terminal).
        resources: settings of `select` about resources, which replace those of the selection: `workers=2`.

    Raises:
        FiestaError: if a setting or the directory is invalid.
    """
    check_main_guard()
    rivals = [against] if isinstance(against, str) else against
    if not isinstance(directory, (str, Path)):
        raise ConfigError("a table of scores cannot be confirmed. Pass the directory of a selection.")
    settings = ConfirmSettings(Path(directory), runs=runs, against=tuple(rivals), seed=seed)
    return run_confirmation(settings, resources, _console(progress), display=LiveTable, recover=recover)


@takes_options(DocumentSettings)
def choose_system(
    systems: Candidates = (),
    *,
    directory: Union[str, Path],
    recover: bool = False,
    force: bool = False,
    progress: Optional[bool] = None,
    **settings: Any,
) -> DocumentsResult:
    """Select the best of several trained systems with few document queries, or resume an interrupted selection.

    Ctrl-C, or an interrupt of a notebook's kernel, stops the queries. The call then returns the result so far, with
    `stopped_by` set to `interrupted`. It keeps every answer.

    Args:
        systems: a mapping from names to archives, files of predictions or config files. Or a list of systems in
            the command's notation, such as `"a=model.tar.gz"`.
        directory: the directory that keeps all files of the selection.
        recover: the command's option `--recover`.
        force: the command's option `--force`.
        progress: whether to show progress (default: only on a terminal).
        settings: the command's other options by name, with underscores: `documents="gold.jsonl", workers=2`.
            `strategy`, `belief` and `stop` can be a name or a mapping with a `type`.

    Raises:
        FiestaError: if a setting, a document, a system or the directory is invalid.
    """
    options = _to_options(settings, systems, candidates_option="systems")
    modes: Dict[str, Any] = {"display": LiveTable, "recover": recover, "force": force}
    run_selection(DocumentSelection, options, Path(directory), console=_console(progress), **modes)
    return DocumentsResult.read(Path(directory))


@takes_options(table_settings.ReplaySettings)
def replay(scores: Scores, *, progress: Optional[bool] = None, **settings: Any) -> Simulation:
    """Repeat a selection over existing scores, and measure how many runs it takes and how often it picks the best.

    Args:
        scores: a table of scores, or a `ScoreSource`. A table is a file; a list of files; a mapping from
            candidates to their scores; rows as mappings from names of columns to values; or a data frame.
        progress: whether to show progress (default: only on a terminal).
        settings: the command's options by name, with underscores: `confidence=0.9, repetitions=100`.

    Raises:
        FiestaError: if a setting or the scores are invalid, or if the scores run out.
        KeyboardInterrupt: if an interrupt comes before the first repetition has finished. After a later interrupt, the
            call returns a result that records it.
    """
    option_values, content = table_settings.split_table_argument(
        settings, None if isinstance(scores, ScoreSource) else scores, "scores"
    )
    source = scores if isinstance(scores, ScoreSource) else None
    replay_settings = table_settings.ReplaySettings.from_layers(option_values)
    if content is not None:
        source = read_score_table(Path("scores"), replay_settings, content)
    replay_settings = replace(replay_settings, scores=replay_settings.scores or (source.name if source else ""))
    return simulate(replay_settings, _console(progress), source)


@takes_options(table_settings.PlanSettings)
def plan(source: Optional[Union[str, Path]] = None, *, progress: Optional[bool] = None, **settings: Any) -> Simulation:
    """Simulate a selection, and estimate how many runs it will need and how often it will pick the best.

    Args:
        source: the directory of a selection, or the file of a table of scores. Omit it to describe the problem with
            numbers: `plan(gap=0.01, sd=0.03, candidates=4)`.
        progress: whether to show progress (default: only on a terminal).
        settings: the command's options by name, with underscores.

    Raises:
        FiestaError: if a setting is invalid, or if the pilot holds too few scores.
        KeyboardInterrupt: if an interrupt comes before the first repetition has finished. After a later interrupt, the
            call returns a result that records it.
    """
    option_values, _ = table_settings.split_table_argument(settings, source, "source")
    return simulate(table_settings.PlanSettings.from_layers(option_values), _console(progress))


@takes_options(table_settings.NextSettings)
def next_runs(scores: Scores, **settings: Any) -> NextRuns:
    """Suggest the next runs of a selection whose runs you make yourself, from their table of scores alone.

    Args:
        scores: a file or a list of files; rows as mappings with the keys candidate, score and seed, and split where
            runs have random splits; a data frame; or a mapping from candidates to their scores. A score of None is a
            run that has not finished; `"failed"` is a run without a score.
        settings: the options of `fiesta-next` by name, with underscores: `candidates=["cnn", "lstm"], workers=4`.

    Raises:
        FiestaError: if a setting or the table is invalid.
    """
    option_values, content = table_settings.split_table_argument(settings, scores, "scores")
    return find_next_runs(table_settings.NextSettings.from_layers(option_values), content)


def _to_options(settings: Mapping[str, Any], candidates: Candidates, *, candidates_option: str) -> Dict[str, Any]:
    """Return the settings as the command line gives them, with `candidates` under the name `candidates_option`."""
    typed_settings = {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}
    if isinstance(candidates, Mapping):
        typed_settings[candidates_option] = tuple(f"{name}={path}" for name, path in candidates.items())
    elif isinstance(candidates, (str, Path)):
        typed_settings[candidates_option] = str(candidates)  # which the settings refuse
    elif candidates:
        typed_settings[candidates_option] = tuple(map(str, candidates))
    if "points" in typed_settings:
        typed_settings["points"] = plain_points(typed_settings["points"])
    if isinstance(typed_settings.get("overrides"), Mapping):
        typed_settings["overrides"] = json.dumps(typed_settings["overrides"])
    return typed_settings


def _console(progress: Optional[bool]) -> Console:
    """Return a console that shows nothing unless that is requested, or it is a terminal."""
    console = PipeSafeConsole()
    console.quiet = not (console.is_terminal if progress is None else progress)
    return console
