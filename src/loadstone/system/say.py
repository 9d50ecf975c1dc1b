"""How work that takes long tells the user what it does."""

from collections.abc import Callable

Say = Callable[[str], None]  # takes a line of text
