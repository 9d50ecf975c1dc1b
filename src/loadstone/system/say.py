"""The callback that shows progress messages to the user."""

from collections.abc import Callable

Say = Callable[[str], None]  # one line of text
