"""Imported first by the fork server: a Ctrl-C in the terminal is for the parent, which ends the workers itself."""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
