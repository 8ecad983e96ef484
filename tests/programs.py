"""Programs that are candidates in tests: shell commands that take no time, over the reviews."""

from pathlib import Path
from typing import Any, Dict


def program_config(reviews: Path, script: str, **changes: Any) -> Dict[str, Any]:
    """A program of a shell script over the data in `reviews`. Its arguments are the files of the training, validation
    and test set, the seed, and the directory; `None` takes a key out."""
    placeholders = ["{train}", "{validation}", "{test}", "{seed}", "{directory}"]
    config: Dict[str, Any] = {
        "type": "program",
        "command": ["sh", "-c", script, "sh", *placeholders],
        "data": {
            **{part: str(reviews / f"{part}.jsonl") for part in ("train", "validation", "test")},
            "format": "jsonl",
        },
        "metrics": "stdout",
        **changes,
    }
    return {key: value for key, value in config.items() if value is not None}
