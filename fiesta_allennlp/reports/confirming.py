"""`fiesta confirm` from its settings to its printable result."""

from dataclasses import dataclass
from typing import Any, Mapping

from rich.console import Console

from fiesta_allennlp.reports.formats import Printable, TerminalLines
from fiesta_allennlp.reports.fresh_runs import ConfirmationResult, plan_in_words, power_table
from fiesta_allennlp.selection.confirmation import ConfirmationPlan
from fiesta_allennlp.selection.store import open_for_reading
from fiesta_allennlp.selection.stored_confirmations import read_confirmation
from fiesta_allennlp.trainings.confirm_settings import ConfirmSettings, check_resources
from fiesta_allennlp.trainings.confirmation import FinishedSelection, begin_confirmation, resume_confirmation


@dataclass(frozen=True, repr=False)
class ConfirmationOutlook(Printable):
    """What fresh runs can show, for a dry run. `plan.power` has the probabilities."""

    plan: ConfirmationPlan

    def shown(self) -> TerminalLines:
        return [power_table(self.plan), *plan_in_words(self.plan), "Nothing was started."]


def plan_confirmation(settings: ConfirmSettings) -> ConfirmationOutlook:
    """Return what a confirmation fixes, and what it can show. Start nothing."""
    return ConfirmationOutlook(FinishedSelection.read(settings.directory).plan(settings))


def confirm(
    settings: ConfirmSettings, resources: Mapping[str, Any], console: Console, *, recover: bool = False
) -> ConfirmationResult:
    """Make the fresh runs of a confirmation, or continue them, and return what they say.

    `resources` are settings of `fiesta select` about resources, which replace those of the selection."""
    check_resources(resources)
    if recover:
        directory = resume_confirmation(settings, resources, console)
    else:
        selection = FinishedSelection.read(settings.directory)
        plan = selection.plan(settings)
        if not settings.again:
            selection.check_may_begin(plan)
        console.print(*plan_in_words(plan))
        directory = begin_confirmation(selection, plan, seed=settings.seed, resources=resources, console=console)
    with open_for_reading(directory) as store:
        return ConfirmationResult(**vars(read_confirmation(directory, store)))
