"""`fiesta confirm` from its settings to its result."""

from typing import Any, Mapping

from rich.console import Console

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.reports.fresh_runs import confirmation_in_words, confirmation_table, plan_in_words, power_table
from fiesta_allennlp.selection.confirmation import Confirmation, ConfirmationPlan
from fiesta_allennlp.selection.showing import TerminalLines, show
from fiesta_allennlp.trainings.confirm_settings import ConfirmSettings, check_resources
from fiesta_allennlp.trainings.confirmation import FinishedSelection, read_confirmation, resume_confirmation


@show.register
def _(plan: ConfirmationPlan) -> TerminalLines:
    return [power_table(plan), *plan_in_words(plan), "Nothing was started."]


@show.register
def _(confirmation: Confirmation) -> TerminalLines:
    return [
        *([confirmation_table([confirmation])] if confirmation.is_over else []),
        *confirmation_in_words(confirmation),
    ]


def plan_confirmation(settings: ConfirmSettings) -> ConfirmationPlan:
    """Return what a confirmation fixes, and what it can show. Start nothing."""
    return FinishedSelection.read(settings.directory).plan(settings)


def confirm(
    settings: ConfirmSettings, resources: Mapping[str, Any], console: Console, *, recover: bool = False
) -> Confirmation:
    """Make the fresh runs of a confirmation, or continue them, and return what they say.

    `resources` are settings of `fiesta select` about resources, which replace those of the selection."""
    check_resources(resources)
    if recover:
        directory = resume_confirmation(settings, resources, console)
    else:
        selection = FinishedSelection.read(settings.directory)
        plan = selection.plan(settings)
        console.print(*plan_in_words(plan))
        directory = selection.begin(plan, seed=settings.seed, resources=resources, console=console)
    confirmation = read_confirmation(directory)
    if confirmation is None:
        raise StoreError(f"{directory.root}: the confirmation has not begun its first run.")
    return confirmation
