"""`loadstone demo` of a simulated Keystone."""

from simulator.families import draw
from virtual import VirtualCommandLine


def test_a_range_of_n_is_an_answer(loadstone: VirtualCommandLine) -> None:
    ended = loadstone("demo", lab=lambda _: draw("writers", 5), seed=5)
    assert "too wide for a number" in " ".join(ended.stdout.split())
    assert ended.code == 0
