"""The errors this package raises on purpose: each message names the rule, the value and the remedy."""


class FiestaError(Exception):
    """Anything a user can mend. The command line prints its message and exits with status 2."""


class ConfigError(FiestaError):
    """A candidate's config or an option is wrong. The message names the file, the key and the value."""


class DataError(FiestaError):
    """A data file is wrong. The message names the file, the line and the record."""


class DataChangedError(FiestaError):
    """Data are not what they were when the selection began. The message says which file, and how."""


class StoreError(FiestaError):
    """The run directory or its store cannot be used as asked."""


class ScoreError(FiestaError):
    """A score cannot be used by the belief that was asked for, for example a logit of a score above 1."""


def describe(error: BaseException) -> str:
    """One line for tables: the type, unless the message speaks for itself, and the message. Halves of characters, which
    an answer may hold and no file can, are told as escapes."""
    message = " ".join(str(error).split()).encode("utf-8", "backslashreplace").decode("utf-8")
    name = type(error).__name__
    speaks = isinstance(error, FiestaError) or name == "ConfigurationError"
    return message if speaks and message else f"{name}: {message}".rstrip(": ")
