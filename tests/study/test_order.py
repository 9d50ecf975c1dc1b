from collections import Counter

from study_files import TWO_BY_TWO

from loadstone.study.order import turns
from loadstone.study.read import StudySource

STUDY = StudySource("mine.yaml", TWO_BY_TWO).study(quick=False)


def test_every_cell_has_had_its_turn_before_any_has_the_next():
    order = turns(STUDY, 1)
    assert [turn.number for turn in order] == list(range(1, 13))
    for repeat in (1, 2, 3):
        its = order[4 * (repeat - 1) : 4 * repeat]
        assert {turn.repeat for turn in its} == {repeat}
        assert {turn.cell for turn in its} == set(STUDY.cells)


def test_the_same_seed_gives_the_same_order():
    # Resuming rests on it: the order is the same in every version of Python.
    assert [str(turn.cell) for turn in turns(STUDY, 1)[:4]] == [
        str(turn.cell)
        for turn in turns(StudySource("b.yaml", TWO_BY_TWO).study(quick=False), 1)[:4]
    ]
    assert turns(STUDY, 1) != turns(STUDY, 2)


def test_over_many_seeds_every_cell_is_first_alike_often():
    first = Counter(str(turns(STUDY, seed)[0].cell) for seed in range(2000))
    assert len(first) == 4
    # Binomial(2000, 1/4): 500 with a standard deviation of 19.4; five of them.
    assert all(403 <= count <= 597 for count in first.values())
