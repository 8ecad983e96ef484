"""From the options of `fiesta-select` to a checked executor."""

import inspect

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, plainly
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.trainings.devices import check_devices
from fiesta_allennlp.trainings.executor_settings import ExecutorSettings, executor_options


def build_executor(settings: ExecutorSettings, directory: RunDirectory) -> Executor:
    """The executor, ready to work.

    Raises:
        ConfigError: where its name or an entry is unknown, or a value cannot work on this machine.
    """
    params = settings.executor_params()
    name = params["type"]
    available = sorted(Executor.list_available())
    if name not in available:
        raise ConfigError(f"--executor must be one of {', '.join(available)} but got '{name}'.")
    known = inspect.signature(Executor.by_name(name)).parameters
    wrong = [key for key in params if key in executor_options() and key not in known]
    if wrong:
        raise ConfigError(f"{flag(wrong[0])} does not go with --executor {name}. Leave it out.")
    check_devices(params.get("cuda_devices") or [])
    common = {
        "workers": settings.workers,
        "time_limit": settings.time_limit,
        "num_threads": settings.threads_per_worker,
        "packages": settings.include_package,
    }
    try:
        return Executor.from_params(Params(params), directory=directory, **common)
    except (ConfigurationError, TypeError) as error:
        raise ConfigError(f"--executor {name}: {plainly(error)}") from error
