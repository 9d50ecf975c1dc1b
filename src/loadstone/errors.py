"""Exceptions that stop a run, and the exit codes of the command line.

0 held, FELL_SHORT, INTERNAL_ERROR, INTERRUPTED, and
LoadstoneError
├── InvalidInput           2  the command line or a file is invalid
├── EnvironmentUnusable    3  target or machine: unreachable, refused, port taken, part missing
│   └── StoreUnusable      3  results cannot be written, whatever is measured
└── MeasurementInvalid     4  the generator was the limit, or the target changed underneath
    └── LoadTimeUsed       4  no load time is left

A failed request is a sample, never an exception.
"""

from typing import ClassVar

FELL_SHORT = 1  # a criterion failed, or resources were left behind
INTERNAL_ERROR = 70  # a bug in Loadstone; EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # as in shells after a SIGINT; interrupts.exit_code() knows other signals


class LoadstoneError(Exception):
    """A run cannot start or continue; the message is one line: what, where and a hint."""

    exit_code: ClassVar[int] = 3


class InvalidInput(LoadstoneError):
    """The command line or a file is invalid."""

    exit_code = 2


class EnvironmentUnusable(LoadstoneError):
    """The target or this machine cannot be used."""

    exit_code = 3


class StoreUnusable(EnvironmentUnusable):
    """Results cannot be written: a full disk, a locked database."""


class MeasurementInvalid(LoadstoneError):
    """A measurement ended, but its result is not valid."""

    exit_code = 4


class LoadTimeUsed(MeasurementInvalid):
    """The permitted load time is used up."""


def first_line(problem: Exception) -> str:
    """Return a problem's message without the log lines that may follow it."""
    return str(problem).splitlines()[0]
