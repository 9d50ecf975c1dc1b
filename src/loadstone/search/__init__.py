"""From verdicts to the capacity; knows nothing but a function that measures."""
