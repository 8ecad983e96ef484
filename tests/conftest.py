"""What several tests share: the data variable, a tiny text classification task, one thread."""

import json
import math
import os
import random
import secrets
import signal
import sys
import time
from importlib.util import find_spec
from multiprocessing import forkserver, util
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from hypothesis import HealthCheck, settings

from tests import warm

os.environ.setdefault("OMP_NUM_THREADS", "1")
for told in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):  # rich would write as to a terminal
    os.environ.pop(told, None)
os.environ["TERM"] = "xterm"  # the tests of terminals ask for no other
# Read when Ray is imported. Else Ray writes a token into the home, and lets all else on the machine go before its work.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_worker_niceness="0")

# A busy machine fails no test, and nor does a new example; `--hypothesis-profile default` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

REPOSITORY = Path(__file__).parent.parent

HAS_ALLENNLP = find_spec("allennlp") is not None
NOT_LIGHT = {"allennlp", "sklearn", "statsmodels", "torch", "yaml"}
"""In the light install, the files of tests that import one of them are skipped. A `conftest.py` imports none."""

LONGEST_FILES = (
    "slurm_test.py",
    "ray_test.py",
    "recover_test.py",
    "fiesta_select_test.py",
    "fiesta_confirm_test.py",
    "fiesta_documents_test.py",
)
"""In the order in which they begin."""

_FORK_SERVER: Any = forkserver._forkserver  # type: ignore[attr-defined]
_ENSURE_RUNNING = _FORK_SERVER.ensure_running
PRELOADED = [
    f"fiesta_allennlp.candidates.{name}" for name in ("preparation", "programs.program_run", "allennlp.loaded")
]
SERVER_STATE = ("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid")
_OTHER_SERVER: Dict[str, Any] = {}
"""The state of the fork server that is not in use."""


def pytest_configure(config: pytest.Config) -> None:
    """Load AllenNLP, which takes seconds, but not where pytest-xdist only hands out tests to other processes."""
    if not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no":
        warm.start_server()
        config.option.dist = "loadfile"  # else several processes start the cluster that the tests of a file share
        config.option.loadscopereorder = False
        config.option.tx = [f"popen//python={sys.executable} {warm.__file__}"] * len(config.option.tx)
    elif HAS_ALLENNLP:
        import fiesta_allennlp.candidates.allennlp.loaded  # noqa: F401
        from fiesta_allennlp.running.fork_server import start_fork_server
        from fiesta_allennlp.running.processes import start_call

        _FORK_SERVER.ensure_running = _start_needed_server
        start_call(start_fork_server(1, PRELOADED), os.getpid)  # now, while this process has hardly any threads


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """A process more than cores, because many tests wait for jobs of a cluster, and for processes to end."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Begin with the longest files: else one of them is at work at the end, while the other processes have nothing."""
    items.sort(key=lambda item: LONGEST_FILES.index(item.path.name) if item.path.name in LONGEST_FILES else math.inf)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report: Any = yield
    cause = report.call.excinfo.value.__cause__ if report.failed else None
    if not HAS_ALLENNLP and isinstance(cause, ImportError) and str(cause.name).split(".")[0] in NOT_LIGHT:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"{cause.name} is not installed")
        del report.call
    return report


def _start_needed_server() -> None:
    """Start a fork server, or take the one that runs. One has AllenNLP loaded, as a fork of this process. The other one
    has not: its processes, for programs, start and end in a tenth of the time."""
    loads_allennlp = "candidates.allennlp" in os.environ.get("FIESTA_PRELOAD", "")
    os.environ["FIESTA_PRELOAD"] = " ".join(PRELOADED[: 2 + loads_allennlp])
    state = vars(_FORK_SERVER)
    if state.get("loads_allennlp", loads_allennlp) != loads_allennlp:
        for name in SERVER_STATE:
            state[name], _OTHER_SERVER[name] = _OTHER_SERVER.get(name), state[name]
    state["loads_allennlp"], spawn = loads_allennlp, util.spawnv_passfds
    if loads_allennlp:
        warm.fork_fork_servers()
    try:
        _ENSURE_RUNNING()
    finally:
        util.spawnv_passfds = spawn


WORDS = {"good": ["lovely", "great", "tasty", "fresh"], "bad": ["awful", "stale", "rude", "cold"]}


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data that may not be copied into the project."""
    path = Path(os.environ.get("FIESTA_SHARED_DATA", REPOSITORY.parent / "shared" / "data")).resolve()
    if not path.is_dir():
        pytest.skip(f"no data at {path}: set FIESTA_SHARED_DATA")
    return path


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are written without their figures, which take most of the time and have tests of their own."""
    monkeypatch.setattr("fiesta_allennlp.reports.figures.draw_all", lambda report, directory: {})


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Interrupts this process as a terminal does, also where tests run in the background and ignore interrupts."""
    before = {ending: signal.getsignal(ending) for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    for ending, handler in before.items():  # a command that was interrupted ignores all of them from then on
        signal.signal(ending, handler)


def until(condition: Callable[[], bool], *, seconds: int = 120) -> None:
    """Wait for what must happen; a test that waits in vain ends with an error."""
    for _ in range(20 * seconds):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} seconds in vain")


def write_reviews(path: Path, num_reviews: int, seed: int) -> None:
    """Reviews of four words of which one or two tell the label, in the format of `text_classification_json`."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for number in range(num_reviews):
            label = rng.choice(sorted(WORDS))
            words = [rng.choice(WORDS[label]), "food", rng.choice(["and", "but"]), f"dish{number % 7}"]
            rng.shuffle(words)
            out.write(json.dumps({"text": " ".join(words), "label": label}) + "\n")


def write_all_reviews(directory: Path) -> Path:
    """Write `train.jsonl`, `validation.jsonl` and `test.jsonl` of 40, 12 and 20 reviews."""
    for part, size in (("train", 40), ("validation", 12), ("test", 20)):
        write_reviews(directory / f"{part}.jsonl", size, seed=size)
    return directory


def classifier_config(directory: Path, **model: Any) -> Dict[str, Any]:
    """A stock AllenNLP text classifier over the reviews in `directory`: nothing of this package is in it."""
    return {
        "dataset_reader": {"type": "text_classification_json", "tokenizer": {"type": "whitespace"}},
        "train_data_path": str(directory / "train.jsonl"),
        "validation_data_path": str(directory / "validation.jsonl"),
        "test_data_path": str(directory / "test.jsonl"),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 4},
            **model,
        },
        "data_loader": {"batch_size": 8, "shuffle": True},
        "trainer": {"optimizer": {"type": "adam", "lr": 0.02}, "num_epochs": 2, "cuda_device": -1},
    }


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A directory with the reviews."""
    return write_all_reviews(tmp_path)


@pytest.fixture
def write_config(reviews: Path) -> Callable[..., Path]:
    """Writes a stock classifier's config as `NAME.jsonnet` beside the reviews; keyword arguments change its model."""

    def write(name: str, changes: "Dict[str, Any] | None" = None, **model: Any) -> Path:
        path = reviews / f"{name}.jsonnet"
        path.write_text(json.dumps({**classifier_config(reviews, **model), **(changes or {})}), encoding="utf-8")
        return path

    return write
