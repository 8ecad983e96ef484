"""Records, options, errors, files, the lock, seeds."""

__all__ = [
    "choice_settings",
    "console",
    "directory",
    "errors",
    "files",
    "metrics",
    "options",
    "records",
    "registry",
    "seeding",
    "texts",
]
