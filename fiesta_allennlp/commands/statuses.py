"""The exit statuses of the commands other than 0, which is decided or inconclusive."""

EXIT_NO_DECISION = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
