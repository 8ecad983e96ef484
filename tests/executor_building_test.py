from unittest.mock import Mock

import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executor_building import check_gpus


@pytest.mark.parametrize("device", [None, -1, "cpu", 0, 1, "cuda:0"])
@pytest.mark.parametrize("hides_gpus", [False, True])
def test_a_gpu_that_is_asked_for_must_be_seen(device: object, hides_gpus: bool) -> None:
    configs = {"one": {"trainer": {}}, "two": {"trainer": {"cuda_device": device}}}
    executor = Mock(hides_gpus=hides_gpus)
    if not hides_gpus or device in (None, -1, "cpu"):
        check_gpus(configs, executor)
        return
    with pytest.raises(ConfigError, match=r"candidate 'two': .* --overrides '\{\"trainer.cuda_device\": -1\}'"):
        check_gpus(configs, executor)
