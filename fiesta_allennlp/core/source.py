"""Where the installed package comes from, for whoever wants to repeat what it did."""

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

GIT_TIMEOUT_SECONDS = 5.0
CLONE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class PackageSource:
    """The commit of the package, with a plus if files were changed after it, and the URL of its repository. Each is
    empty where it is unknown, as for a package from an index, which its version identifies."""

    commit: str = ""
    url: str = ""


@lru_cache(maxsize=1)
def package_source() -> PackageSource:
    """Return the source that pip recorded (PEP 610), or the commit of the clone that the package is in."""
    with suppress(PackageNotFoundError, ValueError, LookupError, TypeError, AttributeError):
        recorded = json.loads(distribution("fiesta-allennlp").read_text("direct_url.json") or "{}")
        if "vcs_info" in recorded:
            return PackageSource(str(recorded["vcs_info"]["commit_id"])[:10], str(recorded["url"]))
    if not (CLONE / ".git").exists():
        return PackageSource()
    command = ["git", "-C", str(CLONE), "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_SECONDS, check=True)
        return PackageSource(done.stdout.strip())
    return PackageSource()
