"""Selections among configs and programs: the family of `fiesta select`, and its trial."""

import os
import time
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Type

from rich.console import Console

from fiesta_allennlp.candidates import preparation
from fiesta_allennlp.candidates.candidate import CandidateRun
from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import DataSnapshot, seen_data_reasons
from fiesta_allennlp.candidates.points import trials_of
from fiesta_allennlp.candidates.preparation import CandidateSet, compare_with_store, load_candidates, take_trials
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Pool, Preparation, check_same_pool
from fiesta_allennlp.choosing.forecast import LiveForecast
from fiesta_allennlp.choosing.strategy import Decision, Strategy, build_strategy, translated_option_errors
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import check_metric_sign
from fiesta_allennlp.core.records import Candidate, History, Outcome
from fiesta_allennlp.core.registry import build_record, build_with_packages
from fiesta_allennlp.core.seeding import fresh_seed, make_request
from fiesta_allennlp.running.executor import Executor
from fiesta_allennlp.running.slurm import end_left_jobs
from fiesta_allennlp.selecting.loop import BroughtUnits, Display, Listener, SelectionLoop
from fiesta_allennlp.selecting.objections import PRETRAINED, REMOVED, UNITS
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import judge
from fiesta_allennlp.selecting.session import SelectionFamily, StoredState, dry_run
from fiesta_allennlp.selecting.store import RunStore
from fiesta_allennlp.selecting.workspace import BestModelKeeper


@dataclass
class TrainingSelection(SelectionFamily):
    """A selection among AllenNLP configs or programs, whose runs are trainings. Once it is prepared, it has an
    `executor`, and `preparations`, which include removed candidates."""

    name = "trainings"
    settings_class: ClassVar[Type[Settings]] = Settings
    candidates_option = "candidates"
    run_noun = "run"

    settings: Settings
    directory: RunDirectory
    candidate_set: CandidateSet
    strategy: Strategy
    executor: Executor = field(init=False)
    preparations: Mapping[str, Preparation] = field(init=False)

    @classmethod
    def check(cls, settings: Settings, stored: StoredState) -> "TrainingSelection":
        if settings.metric is not None and not stored.candidates:  # an old selection continues as it began
            check_metric_sign(settings.metric)
        # a single one is refused for the missing ones
        min_count = 1 if stored.candidates and REMOVED.name not in settings.allow else 2
        packages, minimise = settings.include_package, settings.scored_by.minimise
        candidates = build_with_packages(packages, lambda: cls.load(settings, stored, min_count=min_count))
        candidate_set = compare_with_store(candidates, stored, allowed=settings.allow, division=settings.division)
        active = list(candidate_set.active)
        strategy = build_with_packages(packages, lambda: build_strategy(settings, active, minimise=minimise))
        joined = candidate_set.stored.keys() - stored.meta.removed
        if stored.candidates and not candidate_set.active.keys() <= joined:  # new ones, or removed ones come again
            names, removed = tuple(candidate_set.by_name), candidate_set.removed
            joined_history = replace(stored.history, candidates=names, removed=removed)
            with translated_option_errors(settings):
                strategy.check_room(joined_history.with_withdrawn(max_failures=settings.max_failures))
        selection = cls(settings, stored.directory, candidate_set, strategy)
        if stored.brought is not None:
            is_official, metric = settings.on_official_splits, settings.scored_by.name
            selection.brought = stored.brought.of_candidates(active, metric, on_official_splits=is_official)
        return selection

    @classmethod
    def load(cls, settings: Settings, stored: StoredState, *, min_count: int) -> Mapping[str, Candidate]:
        """Return the candidates by name, as they are now."""
        return load_candidates(settings, trials=take_trials(settings, stored), min_count=min_count)

    @contextmanager
    def prepare_runs(self, directory: RunDirectory, console: Console) -> Iterator[None]:
        for note in self.candidate_set.notes(self.settings.scored_by):
            console.print(f"Note: {note}")
        settings, active = self.settings, self.candidate_set.active
        packages = preparation.worker_packages(settings, self.candidate_set)
        build_it = partial(preparation.build_executor, settings, self.directory, packages=packages)
        with closing(build_with_packages(settings.include_package, build_it)) as self.executor:
            preparation.check_gpus(active, self.executor)
            preparations = {
                name: build_record(Preparation, candidate.facts)
                for name, candidate in self.candidate_set.stored.items()
                if name not in self.candidate_set.corrected
            }
            complete = {
                name for name, built in preparations.items() if all(map(os.path.isfile, dict(built.vectors).values()))
            }
            missing = {name: candidate for name, candidate in active.items() if name not in complete}
            if missing:
                if not settings.on_official_splits:
                    for name, candidate in missing.items():
                        reasons = seen_data_reasons(candidate.config, self.candidate_set.snapshots[name])
                        PRETRAINED.check((f"candidate '{name}': {reason}" for reason in reasons), settings.allow)
                num_threads, vectors = self.executor.num_threads, self.directory.vectors.resolve()
                new_preparations = preparation.prepare_candidates(
                    missing, settings, self.candidate_set, directory, console, num_threads=num_threads
                )
                for name, built in new_preparations.items():  # in `directory`, which becomes this one
                    files = tuple((uri, str(vectors / Path(file).name)) for uri, file in built.vectors)
                    preparations[name] = replace(built, vectors=files)
                check_same_pool({name: preparations[name].pool for name in active})
                pools = [preparations[name].pool for name in missing]
                for text in dict.fromkeys(text for pool in pools for text in pool.contents_read):
                    console.print(f"Read {text}.")
                for note in pools[0].notes:
                    console.print(f"Note: {note}")
            self.preparations = preparations
            built_active = {name: preparations[name] for name in active}
            self.settings = preparation.resolve_metric(settings, active, built_active, console)
            if self.brought is not None:
                self.brought.check_metric(self.settings.scored_by)
            yield

    # What the store keeps.

    @property
    def candidates(self) -> List[Candidate]:
        candidates: List[Candidate] = []
        for name, candidate in self.candidate_set.active.items():
            files = {file.path: file.digest for file in self.candidate_set.snapshots[name].files}
            facts = {**candidate.facts, **asdict(self.preparations[name]), "files": files}
            candidates.append(replace(candidate, facts=facts))
        return candidates

    @property
    def meta(self) -> Mapping[str, Any]:
        return {"removed": sorted(self.candidate_set.removed), "corrected": self.candidate_set.corrected}

    @property
    def code_files(self) -> List[str]:
        """The files of code that the configs name."""
        candidates = self.candidate_set.active.values()
        return sorted({file for candidate in candidates for file in type_of(candidate.config).code})

    # The runs.

    @property
    def pool(self) -> Pool:
        return next(iter(self.preparations.values())).pool

    def runs(self, *, is_trial: bool = False) -> Dict[str, CandidateRun]:
        """Return what runs each candidate, removed ones too. The runs of a trial have one epoch, or few records."""
        settings, candidate_set = self.settings, self.candidate_set
        types = {name: type_of(candidate.config) for name, candidate in candidate_set.by_name.items()}
        return {
            name: candidate.run_class(
                candidate.config,
                metric=settings.scored_by.name,
                group_by=self.preparations[name].pool.group_by,
                data=candidate_set.snapshots.get(name, DataSnapshot()),
                division=candidate_set.division,
                vectors=dict(self.preparations[name].vectors),
                keep_models=settings.keep != "none",
                free_device=self.executor.gives_devices and not self.executor.hides_gpus,
                is_trial=is_trial,
            )
            for name, candidate in types.items()
        }

    @contextmanager
    def open_loop(self, store: RunStore, console: Console, display: Display, *, seed: int) -> Iterator[SelectionLoop]:
        settings, executor, strategy, directory = self.settings, self.executor, self.strategy, self.directory
        start, make_forecast = time.monotonic() - store.meta().working_seconds, LiveForecast()

        def make_result(history: History, decision: Decision) -> Result:
            max_hours, options = settings.max_hours, {"seed": seed, "workers": max(executor.slots, 1)}
            seconds_left = None if max_hours is None else 3600 * max_hours - (time.monotonic() - start)
            forecast = make_forecast(strategy, history, decision, seconds_left=seconds_left, **options)
            return self.result(history, decision, seed=str(seed), forecast=forecast, running=True)

        console.print(f"Training {executor.describe()}.")
        if executor.is_local:
            end_left_jobs(directory)
        with display(console, make_result=make_result, find_queued=executor.queued_runs) as progress:
            listeners: List[Listener] = [progress]
            if UNITS.name not in settings.allow:
                listeners.append(BroughtUnits())
            if settings.keep == "best":
                listeners.append(BestModelKeeper(directory, settings.scored_by.sign))
            yield SelectionLoop(
                strategy=strategy,
                evaluators=self.runs(),
                executor=executor,
                listeners=listeners,
                store=store,
                directory=directory,
                seed=seed,
                max_failures=settings.max_failures,
                shared_splits=settings.splits == "shared",
                max_hours=settings.max_hours,
            )

    def result(self, history: History, decision: Decision, *, seed: str, **further_fields: Any) -> Result:
        settings, strategy, candidates = self.settings, self.strategy, self.candidate_set.by_name
        return training_result(
            settings, strategy, history, decision, candidates, self.preparations, seed=seed, **further_fields
        )

    def conclude(self, history: History, result: Result) -> None:
        if self.settings.keep == "best" and result.best is not None:
            BestModelKeeper(self.directory, self.settings.scored_by.sign).keep_only([result.best], history)


def training_result(
    settings: Settings,
    strategy: Strategy,
    history: History,
    decision: Decision,
    candidates: Mapping[str, Candidate],
    preparations: Mapping[str, Preparation],
    **further_fields: Any,
) -> Result:
    """Return the result of a decision of the strategy, judged over everybody who took part."""
    params = settings.strategy_params()
    return Result.from_decision(
        history,
        judge(history, decision, strategy, allowed=settings.allow),
        settings.scored_by,
        num_parameters={name: built.num_parameters for name, built in preparations.items()},
        study_scores={name: trial.score for name, trial in trials_of(candidates).items()},
        strategy=params,
        target=strategy.confidence or CONFIDENCE,
        belief=params["belief"],
        splits=settings.splits,
        score=settings.score,
        min_score=settings.min_score,
        sets=tuple(next(iter(preparations.values())).pool.official),
        **further_fields,
    )


def trial(settings: Settings, console: Console) -> Iterator[Outcome]:
    """Make one short run of each candidate, and keep nothing: 200 records of a program's data, or one epoch of an
    AllenNLP config. Yield the outcomes."""
    with dry_run(TrainingSelection, settings, console) as prepared:
        if not prepared.executor.is_local:
            raise ConfigError("--trial runs only on this machine. Remove --executor.")
        seed = fresh_seed() if settings.seed is None else settings.seed
        if not prepared.pool.official:
            console.print("Note: these programs load their own data, so a trial makes a whole run of each.")
        runs = prepared.runs(is_trial=True)
        for name in prepared.candidate_set.active:
            request = make_request(seed, name, 0, shared_splits=settings.splits == "shared")
            prepared.executor.submit(runs[name], request)
        yield from prepared.executor.completed()
