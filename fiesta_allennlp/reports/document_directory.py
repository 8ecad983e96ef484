"""What the store of a selection by documents says."""

from dataclasses import replace

from fiesta_allennlp.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.answers import read_charges
from fiesta_allennlp.documents.choice import DocumentChoice, DocumentFacts, answers_path, task_of
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.reports.checklist import documents_checklist
from fiesta_allennlp.reports.content import BATCHES, DOCUMENTS
from fiesta_allennlp.reports.single_scores import LEVEL
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.reports.stored import Stored, importing
from fiesta_allennlp.selection.settings import overlay
from fiesta_allennlp.selection.store import StoreReader
from fiesta_allennlp.strategies.base import all_finished


def is_by_documents(store: StoreReader) -> bool:
    """Whether `fiesta-documents` made it."""
    return store.meta().kind == "documents"


def stored_documents(store: StoreReader, directory: RunDirectory) -> Stored:
    """# Raises

    `StoreError` : where it was made by an older version, which wrote down less.
    `ConfigError` : where its strategy or belief belongs to a package that cannot be imported.
    """
    meta = store.meta()
    facts = meta.document_facts
    if facts is None:
        raise StoreError(
            f"{directory.root}: the selection was made by an older version, which did not write down what a report "
            f"needs. Let allennlp fiesta-documents -s {directory.root} --recover add it: no answer is paid for again."
        )
    settings = DocumentSettings(**overlay(meta.settings or {}, of=DocumentSettings))
    names = [candidate.name for candidate in store.candidates()]
    task = task_of(settings)
    choice = importing(
        settings.include_package, lambda: DocumentChoice.of(settings, task, DocumentFacts(**facts), names)
    )
    asked_confidence = getattr(choice.strategy.strategy, "confidence", None)
    entropy, run = str(meta.entropy), str(meta.run)
    answers = answers_path(settings, directory.root) or directory.answers

    def finish(source: Source) -> Source:
        charges = read_charges(answers, run=run)
        summary = choice.summary(source.history, source.decision, entropy=entropy, charges=charges)
        words = DOCUMENTS if settings.batch_size == 1 else BATCHES
        return replace(source, documents=summary, words=words, intervals=_intervals(source))

    return Stored(
        metric=task.metric,
        strategy=choice.strategy,
        params=choice.strategy_params,
        asked_confidence=asked_confidence,
        max_failures=settings.max_failures,
        checklist=lambda history: documents_checklist(store, choice, history, asked_confidence=asked_confidence),
        finish=finish,
    )


def _intervals(source: Source) -> "dict[str, tuple[float, float]]":
    """Of every system's measure, where the belief is about measures and knows enough of all."""
    history, belief = source.history, source.belief
    if not history.active or not all_finished(history, history.active, belief.min_evaluations):
        return {}
    posterior = belief.posterior(history)
    if not isinstance(posterior, FMeasurePosterior):
        return {}
    ends = posterior.interval(LEVEL).tolist()
    return {name: (low, high) for name, (low, high) in zip(history.active, ends, strict=True)}
