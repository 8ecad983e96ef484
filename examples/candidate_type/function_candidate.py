"""A third type of candidate: a Python function of a module, called with the seeds of each run in a fresh process.

{type: 'function', call: 'scores.noisy', arguments: {gain: 0.1}}
"""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from fiesta_allennlp.candidates.candidate_types import CandidateType
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.errors import ConfigError, describe
from fiesta_allennlp.core.records import Request


@CandidateType.register("function")
class FunctionCandidate(CandidateType):
    """A function that splits its data by `split_seed`, trains by `seed`, and returns its score or metrics by name."""

    def __init__(self, *, call: str, arguments: Optional[Dict[str, Any]] = None) -> None:
        self.call, self.arguments = call, arguments or {}

    @property
    def function(self) -> Callable[..., Mapping[str, Any]]:
        module, _, name = self.call.rpartition(".")
        return getattr(import_module(module), name)

    def run(self, request: Request, directory: Path) -> Mapping[str, Any]:
        return self.function(**self.arguments, seed=request.random_seed, split_seed=request.split_seed)

    def check(self, settings: Settings) -> None:  # optional: refuses before a run is spent
        super().check(settings)
        try:
            inspect.signature(self.function).bind(**self.arguments, seed=1, split_seed=2)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError(f"'call' is '{self.call}': {describe(error)}") from error

    @property
    def code(self) -> List[str]:  # optional: `--recover` notes if one of these files has changed
        return [inspect.getfile(self.function)]
