"""The lessons of the docs in virtual time: they end as the pages say.

`tests/lessons` runs them in a shell.
"""

import lessons
import pytest
from virtual import VirtualCommandLine


@pytest.mark.parametrize("name", ["first", "latency", "limits"])
def test_the_searches_of_a_lesson_end_as_it_says(name: str, loadstone: VirtualCommandLine) -> None:
    service = None
    for words, codes in lessons.commands(name):
        if words[0] == "serve":
            service = lessons.served(words)
        elif words[0] == "capacity":
            assert service is not None
            ended = loadstone(*words, service=service)
            assert ended.code in codes, (words, ended.stdout)
        elif words[:2] in (("results", "list"), ("results", "show")):
            assert loadstone(*words).code in codes


def test_the_comparisons_of_a_lesson_end_as_it_says(loadstone: VirtualCommandLine) -> None:
    found = lessons.commands("faster")
    a, b = (lessons.served(words) for words, _ in found if words[0] == "serve")
    compared = [(words, codes) for words, codes in found if words[0] == "compare"]
    assert len(compared) == 3
    for words, codes in compared:
        assert loadstone(*words, clouds={"a": a, "b": b}).code in codes
