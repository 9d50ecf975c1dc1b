"""The exit codes that the command line ends with, and what stops a run, each with its own.

0 held, FELL_SHORT, INTERRUPTED, and
LoadstoneError
├── InvalidInput           2  the user's words cannot be carried out
├── EnvironmentUnusable    3  target or machine: unreachable, refused, port taken, part missing
└── MeasurementInvalid     4  the generator was the limit, or the target changed underneath
    └── LoadTimeUsed       4  no load time is left

A failed request is a sample, never an exception.
"""

from typing import ClassVar

FELL_SHORT = 1  # the measured thing did not hold, or something was left behind
INTERRUPTED = 130  # as shells say it of a SIGINT


class LoadstoneError(Exception):
    """A run cannot start or go on; the message is one line that says what, where and the mend."""

    exit_code: ClassVar[int] = 3


class InvalidInput(LoadstoneError):
    """The command line or a file asks for what cannot be done."""

    exit_code = 2


class EnvironmentUnusable(LoadstoneError):
    """The target or this machine cannot be used."""

    exit_code = 3


class MeasurementInvalid(LoadstoneError):
    """A measurement was made and cannot be believed."""

    exit_code = 4


class LoadTimeUsed(MeasurementInvalid):
    """More load is asked for, and none of the permitted time is left."""
