"""Answers to the reproducibility checklists of conferences, as far as they were written down."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.files import digest_of
from fiesta_allennlp.records import History
from fiesta_allennlp.replays.table import ScoreTable
from fiesta_allennlp.reports.reading import Reading
from fiesta_allennlp.reports.stored import Stored
from fiesta_allennlp.selection.environment import environment
from fiesta_allennlp.selection.options import as_typed, words_of
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import duration_text
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.settings import Settings

if TYPE_CHECKING:
    from fiesta_allennlp.documents.choice import DocumentChoice

Checklist = Tuple[Tuple[str, str], ...]

SPLITS_IN_WORDS = {
    "shared": "run k of every candidate uses split k",
    "independent": "every run has its own split",
    OFFICIAL: "the sets of the configs; only seeds vary, so P(best) is about new seeds on this split alone",
}

UNKNOWN = "not recorded: the selection began with an older version"


def checklist_of(read: Reading) -> Checklist:
    """Return what you need to repeat what was read, as pairs of key and value."""
    if read.parts:
        return tuple((f"{typed}: {key}", value) for typed, part in read.parts for key, value in checklist_of(part))
    if read.stored is None:
        return () if read.table is None else _of_table(Path(read.name), read.table)
    if isinstance(read.given, Settings):
        return _of_trainings(read.stored, read.given, read)
    return () if read.given is None else _of_documents(read.stored, read.given, read)


def _of_trainings(stored: Stored, settings: Settings, read: Reading) -> Checklist:
    seed = stored.meta.seed
    rows = [
        ("candidates", _given(stored)),
        ("metric", _metric(stored, settings)),
        *_choosing(settings.strategy_params(), "runs", read.asked_confidence),
        *_seeds(settings, seed),
        *_pool(stored.candidates[0].facts["pool"], settings),
        *_environments(stored.meta.environments),
        *_work(stored, settings, read.history),
        ("command to repeat it all", repeat_command(settings, seed)),
        *_repeat_one(stored, settings),
    ]
    return tuple((key, str(value)) for key, value in rows)


def _of_documents(stored: Stored, choice: "DocumentChoice", read: Reading) -> Checklist:
    settings, facts, seed = choice.settings, choice.facts, stored.meta.seed
    shared = "one random order for all systems"
    own = "every system has its own random order"
    return (
        ("systems", _given(stored)),
        ("metric", f"{choice.task.metric} of all answers together, task {settings.task}"),
        *_choosing(choice.strategy_params, "queries", read.asked_confidence),
        (
            "documents",
            f"{facts.file}: {facts.num_documents} with {facts.num_items} items, {settings.batch_size} a query",
        ),
        ("data fingerprint (SHA-256)", str(stored.meta.documents)),
        (
            "order of documents",
            f"{shared if settings.documents_order == 'shared' else own}, from the master seed {seed}",
        ),
        *_environments(stored.meta.environments),
        ("workers", str(settings.workers)),
        *_done(stored, read.history, "queries", "answering"),
        ("command to repeat it all", repeat_command(settings, seed)),
    )


def _of_table(path: Path, table: ScoreTable) -> Checklist:
    counts = [len(scores) for scores in table.scores.values()]
    num_scores = f"{counts[0]} each" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)} each"
    return (
        ("scores", f"{path.name}, SHA-256 {digest_of(path)}"),
        ("candidates", f"{len(counts)} with {sum(counts)} scores, {num_scores}"),
        ("splits", str(len(table.split_names))),
        ("made with", _versions(environment())),
    )


def repeat_command(settings: Union[Settings, DocumentSettings], seed: Optional[str]) -> str:
    """Return what to type to make the same selection: options that are not defaults, and the seed."""
    command, given = ("select", "candidates") if isinstance(settings, Settings) else ("documents", "systems")
    typed = as_typed(settings, positional=given, seed=seed)
    places = len(getattr(settings, given))
    return shlex.join(["python", "-m", "fiesta_allennlp", command, *typed[:places], "-s", "NEW", *typed[places:]])


def _typed(params: Mapping[str, Any], without: str = "") -> str:
    """Describe a config with a `type`."""
    options = {key: value for key, value in params.items() if key not in ("type", without)}
    listed = ", ".join(f"{key} {_typed(value) if isinstance(value, dict) else value}" for key, value in options.items())
    return f"{params['type']} ({listed or 'defaults'})"


def _given(stored: Stored) -> str:
    return "; ".join(f"{candidate.name}: {candidate.source}" for candidate in stored.candidates)


def _choosing(params: Mapping[str, Any], what: str, asked_confidence: Optional[float]) -> Checklist:
    return (
        (f"how {what} were chosen", _typed(params, without="belief")),
        ("target confidence", "none" if asked_confidence is None else f"{asked_confidence:g}"),
        ("margin", f"{params.get('margin', 0):g}"),
        ("belief", _typed(params["belief"])),
    )


def _programs(stored: Stored) -> List[str]:
    return [candidate.name for candidate in stored.candidates if is_program(candidate.config)]


def _metric(stored: Stored, settings: Settings) -> str:
    programs, metric = _programs(stored), f"{settings.scored_by.text} on the {settings.score} set"
    if len(programs) == len(stored.candidates):
        return f"{metric}, as the programs report it"
    by = "on the validation set" if settings.score == "test" else "there"
    others = f"; of {', '.join(programs)} as the program reports it" if programs else ""
    return f"{metric}, of the epoch that was best {by}{others}"


def _repeat_one(stored: Stored, settings: Settings) -> Checklist:
    """Return the commands that make one run again, of AllenNLP configs and of programs."""
    rows: List[Tuple[str, str]] = []
    programs = _programs(stored)
    if len(programs) < len(stored.candidates):
        packages = words_of("include_package", ("fiesta_allennlp.plugin", *settings.include_package))
        train = "OMP_NUM_THREADS=1 allennlp train DIR/evaluations/CANDIDATE-REPLICATE/config.json -s NEW"
        rows.append(("command to repeat one run", f"{train} {shlex.join(packages)}"))
    if programs:
        again = (
            "python -m fiesta_allennlp.trainings.programs.repeat DIR/evaluations/CANDIDATE-REPLICATE/program.json NEW"
        )
        rows.append((f"command to repeat one run of {', '.join(programs)}", again))
    return tuple(rows)


def _seeds(settings: Settings, seed: Optional[str]) -> Checklist:
    return (
        ("seeds", f"derived from the master seed {seed}; evaluations.csv has those of every run"),
        ("splits", f"{settings.splits}: {SPLITS_IN_WORDS[settings.splits]}"),
    )


def _pool(pool: Mapping[str, Any], settings: Settings) -> Checklist:
    if not pool["official"]:
        return (("data", "known to the programs alone, which split their data themselves"),)
    items = "records and groups" if pool.get("is_of_program") else "labels and groups"
    fingerprint = ("data fingerprint (SHA-256)", f"files {pool['data']}; {items} {pool['fingerprint']}")
    if settings.on_official_splits:
        sizes = ", ".join(f"{part} {size}" for part, size in pool["official"].items())
        return (("data", f"{sum(pool['official'].values())} instances; every run: {sizes}"), fingerprint)
    total = sum(pool["targets"].values())
    kept = f"; {pool['num_groups']} groups of equal {pool['group_by']} kept whole" if pool["group_by"] else ""
    drawn = ", ".join(f"{part} {size} ({size / total:.0%})" for part, size in pool["targets"].items())
    return (
        ("data", f"{total} instances; official sizes: " + ", ".join(f"{p} {n}" for p, n in pool["official"].items())),
        ("every split", drawn + kept),
        fingerprint,
    )


def _environments(environments: Sequence[Mapping[str, Any]]) -> Checklist:
    if not environments:
        return (("versions", UNKNOWN), ("hardware", UNKNOWN))
    rows: List[Tuple[str, str]] = []
    for number, found in enumerate(environments):
        later = f" after resumption {number}" if number else ""
        rows += [(f"versions{later}", _versions(found)), (f"hardware{later}", _hardware(found))]
    return tuple(rows)


def _versions(found: Mapping[str, Any]) -> str:
    versions = [f"{name} {version}" for name, version in found["versions"].items()]
    code = [f"{name} with the SHA-256 {digest} of its sources" for name, digest in found.get("code", {}).items()]
    return ", ".join([f"Python {found['python']}", *versions, *code])


def _hardware(found: Mapping[str, Any]) -> str:
    gpus = ", ".join(found["gpus"]) or "no GPU"
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']:g} GiB of memory, {gpus}; "
        f"{found['platform']}"
    )


def _work(stored: Stored, settings: Settings, history: History) -> Checklist:
    executor = settings.executor if isinstance(settings.executor, str) else settings.executor["type"]
    return (
        ("workers", f"{settings.workers}, executor {executor}, {settings.threads_per_worker} threads each"),
        *_done(stored, history, "runs", "run"),
    )


def _done(stored: Stored, history: History, what: str, doing: str) -> Checklist:
    started = sorted(e.started_at for e in history.evaluations if e.started_at)
    seconds = sum(e.seconds for e in history.evaluations)
    lost = sum(f.seconds for f in history.failures)
    when = f", begun {started[0]}, the latest {started[-1]}" if started else ""
    return (
        (what, f"{len(history.evaluations)} finished, {len(history.failures)} failed{when}"),
        (f"{doing} time", f"{duration_text(seconds)} across all workers, and {duration_text(lost)} of failed ones"),
        ("time at work", duration_text(stored.meta.working_seconds)),
    )
