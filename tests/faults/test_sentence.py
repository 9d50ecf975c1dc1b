"""Sentences that name faults."""

import pytest

from loadstone.errors import InvalidInput
from loadstone.faults.sentence import HOLD_S, Fault, Verb, read


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        # As the published task files have them.
        ("kill keystone service on one node", (Verb.KILL, "keystone", "one", None, HOLD_S)),
        ("restart keystone service on one node", (Verb.RESTART, "keystone", "one", None, 0.0)),
        ("restart memcached service on one node", (Verb.RESTART, "memcached", "one", None, 0.0)),
        ("kill mysql service on one node", (Verb.KILL, "mysql", "one", None, HOLD_S)),
        # In other forms of os-faults.
        ("kill keystone service", (Verb.KILL, "keystone", "all", None, HOLD_S)),
        ("Freeze keystone service for 5 seconds", (Verb.FREEZE, "keystone", "all", None, 5.0)),
        ("freeze keystone service on random node for 2 seconds",
         (Verb.FREEZE, "keystone", "random", None, 2.0)),
        ("terminate keystone service on nodes", (Verb.TERMINATE, "keystone", "all", None, HOLD_S)),
        ("reboot one node with mysql service", (Verb.REBOOT, "mysql", "one", None, HOLD_S)),
        # In Loadstone's.
        ("kill keystone on one node", (Verb.KILL, "keystone", "one", None, HOLD_S)),
        ("hang keystone for 1.5s on node 2", (Verb.FREEZE, "keystone", "one", 2, 1.5)),
        ("take one node out for 10 seconds", (Verb.TAKE_OUT, "", "one", None, 10.0)),
        ("disconnect management network on one node with keystone service",
         (Verb.DISCONNECT, "keystone", "one", None, HOLD_S)),
        ("disconnect storage network on one node with nova-compute service",
         (Verb.DISCONNECT, "nova-compute", "one", None, HOLD_S)),
        ("reboot node 2", (Verb.REBOOT, "", "one", 2, HOLD_S)),
        ("take node 2 out for 3 s", (Verb.TAKE_OUT, "", "one", 2, 3.0)),
        ("rolling restart of keystone", (Verb.ROLL, "keystone", "all", None, 0.0)),
        ("flush memcached", (Verb.FLUSH, "memcached", "all", None, 0.0)),
        ("flush tokens", (Verb.FLUSH, "tokens", "all", None, 0.0)),
        ("reload haproxy", (Verb.RELOAD, "haproxy", "all", None, 0.0)),
        ("fill the disk of the database", (Verb.FILL, "database", "all", None, HOLD_S)),
        ("make database read-only for 3 s", (Verb.READ_ONLY, "database", "all", None, 3.0)),
        ("expire certificate", (Verb.EXPIRE, "", "all", None, HOLD_S)),
        ("Expire the TLS certificate of haproxy for 2 seconds",
         (Verb.EXPIRE, "haproxy", "all", None, 2.0)),
    ],
)  # fmt: skip
def test_a_sentence_names_what_is_done_to_whom(sentence: str, fault: tuple) -> None:
    found = read(sentence)
    assert (found.verb, found.service, found.which, found.node, found.hold_s) == fault


def test_an_overload_is_a_factor_of_the_load() -> None:
    found = read("overload 2.5x for 60 seconds")
    assert (found.verb, found.factor, found.hold_s) == (Verb.OVERLOAD, 2.5, 60.0)
    with pytest.raises(InvalidInput, match="from 1x to 100x"):
        read("overload 1000x")


def test_a_delay_is_of_each_direction() -> None:
    found = read("delay network on one node by 150 ms for 3 seconds")
    assert (found.verb, found.delay_s, found.hold_s) == (Verb.DELAY, 0.15, 3.0)


def test_cpu_is_stolen_in_shares() -> None:
    assert read("steal 50% of the cpu for 4 seconds") == Fault(
        "steal 50% of the cpu for 4 seconds", Verb.STEAL_CPU, hold_s=4.0, share=0.5
    )


def test_an_overload_may_be_followed_by_another_load() -> None:
    assert read("overload 2x for 60 seconds, then 0.8x").after == 0.8
    assert read("overload 2x for 60 seconds").after == 1.0


def test_rolling_changes_name_what_changes() -> None:
    option = read("rolling restart of keystone with Token.expiration=7200")
    assert (option.verb, option.option, option.value) == (
        Verb.CONFIGURE,
        ("Token", "expiration"),
        "7200",
    )
    assert option.lasts_to_the_end
    assert option.hold_s > 3600  # a load may be longer than a fault with a duration
    assert not read("rotate fernet keys for 600 seconds").lasts_to_the_end
    upgrade = read("upgrade keystone to 30.0.0")
    assert (upgrade.verb, upgrade.value, upgrade.hold_s) == (Verb.UPGRADE, "30.0.0", 0.0)


def test_packets_are_lost_in_shares() -> None:
    found = read("lose 5% of packets on one node for 3 seconds")
    assert (found.verb, found.share, found.which, found.hold_s) == (Verb.LOSE, 0.05, "one", 3.0)


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("kil keystone service", "is not a sentence like"),
        ("connect management network on one node", "network faults"),
        ("poweroff one node", "machines of its own"),
        ("restart keystone service for 5 seconds", "has no duration"),
        ("kill keystone service for 5000 seconds", "600 s at most"),
        ("steal 300% of the cpu", "at most 100 %"),
        ("overload 2x for 5 s, then 3x", "at most 2x"),
        ("overload 2x for 0 seconds", "more than 0 seconds"),
        ("take 2 nodes out", "is not a sentence like"),
        ("kill keystone service on 2 nodes", "is not a sentence like"),
        ("kill keystone service on all nodes 2", "name a node by its number"),
    ],
)
def test_what_cannot_be_is_said(sentence: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(sentence)
