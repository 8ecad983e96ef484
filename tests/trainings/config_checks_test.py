from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.config_checks import check_distinct_sets
from fiesta_allennlp.trainings.data_files import take_snapshot
from tests.conftest import classifier_config

OFFICIAL = Division(is_official=True)
OF_THREE, OF_TWO = Division(ratios=(0.5, 0.2, 0.3)), Division(ratios=(0.8, 0.2), scored="validation")
BY_VALIDATION, OFFICIAL_BY_VALIDATION = (Division(scored="validation", is_official=known) for known in (False, True))


def checked(config: Dict[str, Any], message: Optional[str], *, metric: str = "accuracy", **options: Any) -> None:
    """The config is refused with the message, or passes where there is none."""
    with nullcontext() if message is None else pytest.raises(ConfigError, match=message):
        type_of(config).check(metric=Metric.parse(metric), **{"division": OFFICIAL_RATIOS_DIVISION, **options})


def compared(config: Dict[str, Any], message: Optional[str], division: Division = OFFICIAL_RATIOS_DIVISION) -> None:
    """The parts of the config are refused as the same data, or pass."""
    checked(config, None, division=division)
    with nullcontext() if message is None else pytest.raises(ConfigError, match=f"{message}.* the same data"):
        known = type_of(config)
        check_distinct_sets(
            known.data_paths, division, take_snapshot(division.used_paths(known.data_paths)), known.data_key
        )


def test_the_same_data_in_two_sets_are_refused(reviews: Path) -> None:
    """By path, by file, by content, and through links; a file that is next to both is not data."""
    config = {**classifier_config(reviews), "train_data_path": f"{reviews}/t*.jsonl"}
    compared(config, "'train_data_path' .* and 'test_data_path'")
    config["train_data_path"] = f"{reviews}/tr*.jsonl"
    compared(config, None)
    (reviews / "copy.jsonl").write_bytes((reviews / "test.jsonl").read_bytes())
    compared({**config, "train_data_path": str(reviews / "copy.jsonl")}, "'train_data_path' .* and 'test_data_path'")
    official = {**config, "validation_data_path": str(reviews / "test.jsonl")}
    compared(official, "'validation_data_path' .* and 'test_data_path'", OFFICIAL)
    compared({**official, "test_data_path": None}, None, BY_VALIDATION)
    compared(official, None, OFFICIAL_BY_VALIDATION)
    urls = dict.fromkeys(("validation_data_path", "test_data_path"), "none://example.org/test.jsonl")
    compared({**config, **urls}, "'validation_data_path' .* and 'test_data_path'")
    for part in ("train", "test"):
        (reviews / part).mkdir()
        (reviews / f"{part}.jsonl").rename(reviews / part / "a.jsonl")
        (reviews / part / "LICENCE").write_text("free")
        config[f"{part}_data_path"] = str(reviews / part)
    compared(config, None)
    (reviews / "train" / "b.jsonl").symlink_to(reviews / "test" / "a.jsonl")
    compared(config, "'train_data_path' .* and 'test_data_path'")


BUCKETS = {"batch_sampler": {"type": "bucket", "batch_size": 4, "drop_last": True}}
WHOLE = {"batch_size": 4, "drop_last": False, "batches_per_epoch": None}
NO_VALIDATION, NO_TEST = {"validation_data_path": None}, {"test_data_path": None}
ONE_FILE = {**NO_VALIDATION, **NO_TEST}


def wanting(metric: Any) -> Dict[str, Any]:
    return {"trainer": {"validation_metric": metric}}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (ONE_FILE, {}, "'validation_data_path' or 'test_data_path', set the sizes"),
        (ONE_FILE, {"division": OF_THREE}, None),
        (ONE_FILE, {"division": OF_TWO}, None),
        ({}, {"division": OFFICIAL}, None),
        (NO_TEST, {"division": OFFICIAL}, "'test_data_path', which is missing.* --score validation"),
        (NO_VALIDATION, {"division": OFFICIAL}, "'validation_data_path', which is missing"),
        (NO_TEST, {"division": OFFICIAL_BY_VALIDATION}, None),
        (NO_TEST, {"division": BY_VALIDATION}, None),
        (NO_VALIDATION, {"division": BY_VALIDATION}, "'validation_data_path', set the sizes.*--split-ratios 0.8,0.2"),
        ({"data_loader": {"batches_per_epoch": 2}}, {}, "'data_loader.batches_per_epoch' is 2"),
        ({"validation_data_loader": BUCKETS}, {}, "drop_last' is true"),
        ({"data_loader": BUCKETS, "validation_data_loader": WHOLE}, {}, None),
        ({"data_loader": WHOLE, "validation_data_loader": None}, {}, None),
        (wanting(["+a", "-ppl"]), {"metric": "ppl"}, "contradicts --metric=\\+ppl"),
        (wanting("+accuracy"), {"metric": "-accuracy"}, r"contradicts --metric=-accuracy. Use --metric=\+accuracy"),
        (wanting("-ppl"), {"metric": "-ppl"}, None),
        (wanting("-loss"), {"metric": "ppl"}, None),
    ],
)
def test_sets_loaders_and_the_trainer_must_go_with_the_options(
    reviews: Path, changes: Dict[str, Any], options: Dict[str, Any], message: Optional[str]
) -> None:
    """Every set that is needed has a file, the whole test set is scored, and the trainer wants the same direction."""
    checked({**classifier_config(reviews), **changes}, message, **options)
