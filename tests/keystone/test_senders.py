"""The number of users that send requests; a search asks whether a limit is for each of them."""

import pytest

from loadstone.workload.capacity import by_name

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("scenario", "users", "senders"),
    [
        ("issue", 10, 10),
        ("validate", 10, 1),  # the administrator, whichever token is validated
        ("mix:issue=1,validate=9", 10, None),  # mostly the administrator
        ("mix:issue=1,validate=9", 0, 1),
    ],
)
def test_the_senders_of_a_mix_are_not_counted(scenario, users, senders):
    assert by_name(scenario, users).senders == senders
