"""AllenNLP 2.10.1 with newer versions of torch and transformers than it was released with.

On Python 3.11 and later nothing older can be installed. Importing this module changes two places of AllenNLP that newer
versions refuse. With the versions of AllenNLP's own pins both do what they did before.
"""

from typing import Any, List, Union

import torch
from allennlp.common import cached_transformers
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers import ReduceOnPlateauLearningRateScheduler

_get_tokenizer = cached_transformers.get_tokenizer


def get_tokenizer(model_name: str, **kwargs: Any) -> Any:
    """A tokenizer from AllenNLP's cache. `PretrainedTransformerTokenizer` gives `add_special_tokens` here, which
    tokenizers have never used at this point, and which transformers 4.45 refuses as the name of a method."""
    kwargs.pop("add_special_tokens", None)
    return _get_tokenizer(model_name, **kwargs)


cached_transformers.get_tokenizer = get_tokenizer


@LearningRateScheduler.register("reduce_on_plateau", exist_ok=True)
class ReduceOnPlateau(ReduceOnPlateauLearningRateScheduler):
    """AllenNLP's scheduler without `verbose`, which torch 2.12 refuses. Here the argument has no effect."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        threshold_mode: str = "rel",
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: Union[float, List[float]] = 0,
        eps: float = 1e-8,
    ) -> None:
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer,
            mode=mode,
            factor=factor,
            patience=patience,
            threshold=threshold,
            threshold_mode=threshold_mode,
            cooldown=cooldown,
            min_lr=min_lr,
            eps=eps,
        )
        super(ReduceOnPlateauLearningRateScheduler, self).__init__(scheduler)
