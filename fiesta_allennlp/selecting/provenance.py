"""Where the runs of a selection come from: this package; its sessions, with directory and code; the machines; and runs
that were made before it began."""

import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError, StoreError, join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.metrics import UNNAMED, Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Origin, Outcome
from fiesta_allennlp.core.texts import count_text

GIT_TIMEOUT_SECONDS = 5.0
CLONE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class PackageSource:
    """The commit of the package, with a plus if files were changed after it, and the URL of its repository. Each is
    empty where it is unknown, as for a package from an index, which its version identifies."""

    commit: str = ""
    url: str = ""


@lru_cache(maxsize=1)
def package_source() -> PackageSource:
    """Return the source that pip recorded (PEP 610), or the commit of the clone that the package is in."""
    with suppress(PackageNotFoundError, ValueError, LookupError, TypeError, AttributeError):
        recorded = json.loads(distribution("fiesta-allennlp").read_text("direct_url.json") or "{}")
        if "vcs_info" in recorded:
            return PackageSource(str(recorded["vcs_info"]["commit_id"])[:10], str(recorded["url"]))
    if not (CLONE / ".git").exists():
        return PackageSource()
    command = ["git", "-C", str(CLONE), "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_SECONDS, check=True)
        return PackageSource(done.stdout.strip())
    return PackageSource()


def describe_environment(packages: Iterable[str] = (), files: Iterable[str] = ()) -> Dict[str, Any]:
    """Describe this session as plain data: `host` and `directory` (the current one) of the command, and `code` (SHA-256
    of each file, and of all source files of each top-level module that can be found). `packages` are modules that runs
    import, `files` are programs. An `Origin` describes the machine of each run."""
    code = {file: file_digest(Path(file)) for file in files}
    for module in sorted({package.partition(".")[0] for package in packages}):
        if sources := _source_files(module):
            text = "".join(f"{source.name} {file_digest(source)}" for source in sources)
            code[module] = hashlib.sha256(text.encode()).hexdigest()
    return {"host": platform.node(), "directory": os.getcwd(), "code": code}


def append_environment(environments: Sequence[Dict[str, Any]], current: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the sessions of a selection, and this one if it differs from the last."""
    return [*environments] if current in environments[-1:] else [*environments, current]


def changed_code(environments: Sequence[Mapping[str, Any]], current: Mapping[str, Any]) -> List[str]:
    """Return the files, and the modules with source files, that have changed since the selection last ran."""
    digests_before = environments[-1].get("code", {}) if environments else {}
    return [name for name, digest in current["code"].items() if digests_before.get(name, digest) != digest]


def check_current_directory(environments: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to continue a selection in another directory than it began in, where relative paths name other files. A
    directory that does not exist any more, or on another machine, has been moved."""
    first_directory = next((environment["directory"] for environment in environments if "directory" in environment), "")
    if os.path.isdir(first_directory) and not os.path.samefile(first_directory, os.getcwd()):
        here, there = os.getcwd(), shlex.quote(first_directory)
        raise StoreError(f"the selection began in another directory than {here}. Continue there: cd {there}")


def _source_files(module: str) -> List[Path]:
    with suppress(ImportError, ValueError):
        spec = find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            return sorted(path for root in spec.submodule_search_locations for path in Path(root).rglob("*.py"))
        if spec is not None and Path(spec.origin or "").is_file():
            return [Path(str(spec.origin))]
    return []


@dataclass(frozen=True)
class MachineRuns:
    """The runs of one machine with one software: an entry of `machines` in `selection.json`. `mean_seconds` is that of
    its finished runs."""

    origin: Origin
    num_evaluations: int = 0
    num_failures: int = 0
    mean_seconds: Optional[float] = None


def count_machine_runs(history: History) -> Tuple[MachineRuns, ...]:
    """Count the runs of each machine in the order of its first finished run, then those whose runs all failed. Runs
    that nobody can tell the machine of are left out."""
    outcomes_by_origin: Dict[str, List[Outcome]] = {}
    outcomes: Tuple[Outcome, ...] = (*history.evaluations, *history.failures)
    for outcome in outcomes:
        if outcome.origin.host:
            outcomes_by_origin.setdefault(repr(outcome.origin.without_job), []).append(outcome)
    machines = []
    for own in outcomes_by_origin.values():
        seconds = [outcome.seconds for outcome in own if isinstance(outcome, Evaluation)]
        mean_seconds = sum(seconds) / len(seconds) if seconds else None
        machines.append(MachineRuns(own[0].origin.without_job, len(seconds), len(own) - len(seconds), mean_seconds))
    return tuple(machines)


BROUGHT_CAUTION = (
    "fiesta_allennlp cannot check that the same code made these runs on the same data, or that nobody picked them by "
    "their scores."
)


@dataclass(frozen=True)
class BroughtRuns:
    """The finished and failed runs of a table of scores, in its order.

    Their requests have negative replicates and split seeds, so that they differ from all runs of the selection. Runs
    with equal split seeds share a split of their own; unless the table `has_splits`, each has one. `metric` is what the
    table calls the metric, with its sign, or empty. `left_out` are the candidates of the table that the selection does
    not have.
    """

    file: str
    digest: str
    has_splits: bool
    metric: str
    outcomes: Tuple[Outcome, ...]
    left_out: Tuple[str, ...] = ()

    def of_candidates(self, names: Collection[str], metric: str, *, on_official_splits: bool) -> "BroughtRuns":
        """Return the runs of these candidates, scored by `metric`. Raise a `ConfigError` if there is none, or if their
        splits are unknown."""
        own_names = dict.fromkeys(outcome.request.candidate for outcome in self.outcomes)
        if not own_names.keys() & set(names):
            raise ConfigError(
                f"--scores {self.file}: no candidate of the table is one of this selection. The table has "
                f"{join_some(list(own_names)) or 'none'}, the selection {join_some(list(names))}. Rename one side."
            )
        if not self.has_splits and not on_official_splits:
            raise ConfigError(
                f"--scores {self.file}: on random splits, the table must say which runs share a split. Add a "
                "column split, or compare with --splits official."
            )
        outcomes = (outcome for outcome in self.outcomes if outcome.request.candidate in names)
        return replace(
            self,
            outcomes=tuple(replace(o, metric=metric) if isinstance(o, Evaluation) else o for o in outcomes),
            left_out=tuple(name for name in own_names if name not in names),
        )

    def check_metric(self, metric: Metric) -> None:
        """Refuse scores of another metric than that of the selection, or, if the table has a sign, of the other
        direction. Of a name such as `metrics.f1`, the last part counts."""
        own = Metric.parse(self.metric)
        own_name, name = (re.split(r"[./](?=[A-Za-z])", each.name)[-1] for each in (own, metric))
        is_other = own_name not in ("", UNNAMED.name, name)
        if is_other or (self.metric[:1] in ("+", "-") and own.minimise != metric.minimise):
            raise ConfigError(
                f"--scores {self.file}: the metric of the table is {own.display_name}, but that of the selection is "
                f"{metric.display_name}. Correct the column metric, or use --metric={own.option_text}."
            )

    @property
    def facts(self) -> Dict[str, Any]:
        """What a store keeps of the table."""
        return {"file": self.file, "digest": self.digest, "left_out": list(self.left_out)}

    @property
    def sentences(self) -> Tuple[str, ...]:
        """What is taken, in words."""
        texts = []
        for kind, noun in ((Evaluation, "run"), (Failure, "failed run")):
            counts = Counter(outcome.request.candidate for outcome in self.outcomes if isinstance(outcome, kind))
            if counts:
                counts_text = join_some([f"{name} {count}" for name, count in counts.items()])
                texts.append(f"{count_text(counts.total(), noun)} ({counts_text})")
        left_out = f" Left out: {join_some(list(self.left_out))}." if self.left_out else ""
        return f"Taken from {self.file}: {' and '.join(texts)}.{left_out}", BROUGHT_CAUTION
