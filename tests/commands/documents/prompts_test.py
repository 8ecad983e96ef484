"""The example with three prompts for one service, as the page on documents shows it."""

import shutil
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from runpy import run_path

import pytest

from tests.commands.conftest import Call
from tests.conftest import REPOSITORY
from tests.run_files import entry_of, summary_of

EXAMPLE = REPOSITORY / "examples" / "documents"


def test_the_best_of_three_prompts_is_found_and_each_has_its_cost(
    tmp_path: Path, run: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("requests")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "secret-of-the-example")
    for name in ("data", "examples"):
        Path(name).symlink_to(REPOSITORY / name)
    run_path(str(EXAMPLE / "documents.py"))
    shutil.copytree(EXAMPLE / "prompts", "prompts")
    with ThreadingHTTPServer(("127.0.0.1", 0), run_path(str(EXAMPLE / "llm.py"))["Handler"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        service = Path("prompts", "service.libsonnet")
        service.write_text(service.read_text().replace("8766", str(server.server_address[1])))
        prompts = sorted(Path("prompts").glob("*.jsonnet"))
        call.done(*prompts, "--documents", "gold.jsonl", "-s", run, "--workers", 4, "--seed", 1)
        server.shutdown()
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"]) == ("examples", "confidence")
    costs = {"sentence": 0.0002, "target": 0.0003, "examples": 0.0007}
    for name, cost in costs.items():
        entry = entry_of(run, name)
        assert entry["num_queries"] >= entry["num_documents"] > 0, "one query for each item"
        assert entry["cost"] == pytest.approx(cost * entry["num_queries"])
    assert entry_of(run, "sentence")["measure"] < entry_of(run, "target")["measure"] < 0.95
    assert b"secret-of-the-example" not in b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
