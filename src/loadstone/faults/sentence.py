"""Parses fault sentences, in the grammar of os-faults with extensions.

kill keystone service on one node
freeze memcached service for 5 seconds
reboot one node with mysql service
take one node out for 10 seconds
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from loadstone.errors import InvalidInput

HOLD_S = 5.0  # default duration of a fault
LONGEST_S = 600.0
TO_THE_END_S = 86_400.0  # longer than any load
MOST_FACTOR = 100.0


class Verb(StrEnum):
    """The verb of a fault."""

    KILL = "kill"  # SIGKILL; started again at the end
    TERMINATE = "terminate"  # SIGTERM; started again at the end
    STOP = "stop"  # in an orderly way; started again at the end
    START = "start"
    RESTART = "restart"  # in an orderly way, and started at once
    RELOAD = "reload"
    FREEZE = "freeze"  # SIGSTOP; SIGCONT at the end
    UNFREEZE = "unfreeze"
    REBOOT = "reboot"  # a node: all its parts killed; started at the end
    DISCONNECT = "disconnect"  # the network between haproxy and a node; another service: freeze
    DELAY = "delay"  # the same
    TAKE_OUT = "take out"  # of the balancer; put back at the end
    LOSE = "lose"  # a share of the packets between haproxy and a node
    ROLL = "rolling restart"  # of the nodes, each out of the balancer meanwhile
    CONFIGURE = "configure"  # the same for an option of keystone.conf; put back at the end
    UPGRADE = "upgrade"  # to another release, node after node; it stays
    FLUSH = "flush"  # memcached, or the table of tokens
    ROTATE = "rotate"  # Fernet keys; the old ones are put back at the end
    READ_ONLY = "read-only"  # the database
    FILL = "fill"  # the database's file system
    EXPIRE = "expire"  # the certificate that haproxy shows; the valid one is put back at the end
    STEAL_CPU = "steal cpu"
    OVERLOAD = "overload"  # multiplies the load


# Faults without a duration.
MOMENTARY = (
    *(Verb.ROLL, Verb.UPGRADE, Verb.START, Verb.RESTART, Verb.RELOAD, Verb.UNFREEZE, Verb.FLUSH),
)
# Faults that by default last to the load's end.
LASTING = (Verb.ROTATE, Verb.CONFIGURE)
# Changes that go from node to node under load.
ROLLING = (Verb.ROLL, Verb.CONFIGURE, Verb.UPGRADE)
OF_SERVICES = {
    "hang": Verb.FREEZE,
    **{
        verb.value: verb
        for verb in (
            Verb.KILL,
            Verb.TERMINATE,
            Verb.STOP,
            Verb.START,
            Verb.RESTART,
            Verb.RELOAD,
            Verb.FREEZE,
            Verb.UNFREEZE,
        )
    },
}
KEYSTONE = ("", "keystone")  # services behind haproxy
# Verbs of os-faults that a lab cannot have: its parts share one machine and one network.
MISSING = {
    "plug": "network faults",
    "unplug": "network faults",
    "connect": "network faults",
    "poweroff": "machines of its own",
    "poweron": "machines of its own",
    "shutdown": "machines of its own",
    "reset": "machines of its own",
    "oom": "machines of its own",
}
_NODES = r"(?:\s+on\s+(?:(?P<which>one|single|random|all)\s+)?nodes?(?:\s+(?P<number>\d+))?)?"
_TIME = r"(?:\s+for\s+(?P<seconds>\d+(?:\.\d+)?)\s*(?:s|seconds?))?"
_ONE_NODE = (
    r"(?:(?P<which>one|single|random|all)(?:\s+of(?:\s+the)?)?\s+nodes?|node\s+(?P<number>\d+))"
)
_SHARE = r"(?P<share>\d+(?:\.\d+)?)\s*%"
_SERVICE = rf"(?P<verb>{'|'.join(OF_SERVICES)})\s+(?P<service>[\w-]+)(?:\s+service)?"
_SENTENCES = (
    (None, rf"{_SERVICE}{_NODES}{_TIME}"),
    (None, rf"{_SERVICE}{_TIME}{_NODES}"),
    (Verb.REBOOT, rf"reboot\s+{_ONE_NODE}(?:\s+with\s+(?P<service>[\w-]+)\s+service)?{_TIME}"),
    (
        Verb.DISCONNECT,
        rf"disconnect\s+(?:(?P<network>\w+)\s+)?network\s+on\s+{_ONE_NODE}"
        rf"(?:\s+with\s+(?P<service>[\w-]+)\s+service)?{_TIME}",
    ),
    (Verb.DELAY, rf"delay\s+network\s+on\s+{_ONE_NODE}\s+by\s+(?P<delay>\d+)\s*ms{_TIME}"),
    (Verb.LOSE, rf"lose\s+{_SHARE}\s+of\s+(?:the\s+)?packets\s+on\s+{_ONE_NODE}{_TIME}"),
    (Verb.TAKE_OUT, rf"take\s+{_ONE_NODE}\s+out{_TIME}"),
    (Verb.ROLL, r"rolling\s+restart\s+of\s+(?P<service>keystone)(?:\s+service)?"),
    (
        Verb.CONFIGURE,
        r"rolling\s+restart\s+of\s+(?P<service>keystone)(?:\s+service)?"
        r"\s+with\s+(?P<option>[\w-]+\.\w+)=(?P<value>\S+)",
    ),
    (Verb.UPGRADE, r"upgrade\s+(?P<service>keystone)\s+to\s+(?P<value>\d+\.\d+\.\d+)"),
    (Verb.FLUSH, r"flush\s+(?P<service>memcached|tokens)(?:\s+service)?"),
    (Verb.ROTATE, rf"rotate\s+(?P<service>fernet)\s+keys{_TIME}"),
    (Verb.READ_ONLY, rf"make\s+(?:the\s+)?(?P<service>database)\s+read-only{_TIME}"),
    (Verb.FILL, rf"fill\s+(?:the\s+)?disk\s+of\s+(?:the\s+)?(?P<service>database){_TIME}"),
    (
        Verb.EXPIRE,
        rf"expire\s+(?:the\s+)?(?:tls\s+)?certificate(?:\s+of\s+(?P<service>haproxy))?{_TIME}",
    ),
    (
        Verb.OVERLOAD,
        rf"overload\s+(?P<factor>\d+(?:\.\d+)?)x{_TIME}(?:,?\s+then\s+(?P<after>\d+(?:\.\d+)?)x)?",
    ),
    (Verb.STEAL_CPU, rf"steal\s+(?:{_SHARE}\s+of\s+)?(?:the\s+)?cpu{_TIME}"),
)  # fmt: skip
Which = Literal["all", "one", "random"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A parsed fault sentence."""

    sentence: str
    verb: Verb
    service: str = ""  # "" where the verb says what is meant
    which: Which = "all"
    node: int | None = None  # from 1; None: as `which` says
    hold_s: float = HOLD_S  # until it is undone
    share: float = 1.0  # of the machine's CPU, or of packets
    factor: float = 1.0  # of the load
    after: float = 1.0  # of the load, once the overload is over
    delay_s: float = 0.0  # of each direction
    option: tuple[str, str] = ("", "")  # of keystone.conf: section, name
    value: str = ""  # of the option; the release
    network: str = ""  # that is disconnected; "" where the sentence names none

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters of the fault, as the environment variables of a command."""
        match self.verb:
            case Verb.LOSE | Verb.STEAL_CPU:
                # A plain decimal: tc and most programs do not read 1e-05.
                return {"FAULT_PERCENT": format(Decimal(f"{100 * self.share:g}"), "f")}
            case Verb.DELAY:
                return {"FAULT_DELAY_MS": f"{1000 * self.delay_s:.0f}"}
            case Verb.DISCONNECT if self.network:
                return {"FAULT_NETWORK": self.network}
            case Verb.CONFIGURE:
                return {"FAULT_OPTION": ".".join(self.option), "FAULT_VALUE": self.value}
            case Verb.UPGRADE:
                return {"FAULT_RELEASE": self.value}
            case _:
                return {}

    @property
    def lasts_to_the_end(self) -> bool:
        """Whether the fault is undone only after the load."""
        return self.verb in LASTING and self.hold_s == TO_THE_END_S


def read(sentence: str) -> Fault:
    """Parse a fault sentence; raise InvalidInput with the reason if it is invalid."""
    plain = " ".join(sentence.split())
    for verb, pattern in _SENTENCES:
        match = re.fullmatch(pattern, plain, re.IGNORECASE)
        if match is not None:
            parts = match.groupdict()
            # Options of keystone.conf, their values and names of networks keep their case.
            case_sensitive = {name: parts.get(name) for name in ("option", "value", "network")}
            lower = {name: one and one.lower() for name, one in parts.items()}
            return _fault(sentence, verb, lower | case_sensitive)
    first = plain.lower().partition(" ")[0]
    if first in MISSING:
        raise InvalidInput(
            f"fault {sentence!r}: {first} needs {MISSING[first]}, which a lab on one machine has "
            "not; freeze and kill are the nearest"
        )
    raise InvalidInput(
        f"fault {sentence!r}: is not a sentence like `kill keystone service on one node`, `freeze "
        "memcached service for 5 seconds`, `reboot one node`, `take one node out`, "
        "`disconnect network on one node`, `delay network on one node by 100 ms`, `lose 10% of "
        "packets on one node`, `rolling restart of keystone`, `rolling restart of keystone with "
        "token.expiration=7200`, `upgrade keystone to 30.0.0`, `flush memcached`, `flush tokens`, "
        "`rotate fernet keys`, `make database read-only`, `fill disk of database`, "
        "`expire certificate`, `steal cpu`, "
        "`overload 2x for 60 seconds, then 0.8x`; "
        f"verbs are {', '.join(OF_SERVICES)}"
    )


def _fault(sentence: str, verb: Verb | None, parts: dict[str, str | None]) -> Fault:
    verb = verb or OF_SERVICES[parts["verb"] or ""]
    seconds = parts.get("seconds")
    if seconds is not None and verb in MOMENTARY:
        raise InvalidInput(f"fault {sentence!r}: {verb} has no duration; leave out `for`")
    hold_s = 0.0 if verb in MOMENTARY else float(seconds or HOLD_S)
    if hold_s > LONGEST_S:
        raise InvalidInput(f"fault {sentence!r}: lasts {LONGEST_S:.0f} s at most")
    if verb is Verb.OVERLOAD and not hold_s:
        raise InvalidInput(f"fault {sentence!r}: an overload lasts for more than 0 seconds")
    if verb in LASTING and seconds is None:
        hold_s = TO_THE_END_S  # tokens of a new key are valid until the load's end
    number = parts.get("number")
    which = parts.get("which") or ("one" if number else "all")
    if number and parts.get("which"):
        raise InvalidInput(f"fault {sentence!r}: name a node by its number, or one, random, all")
    node = int(number) if number else None
    share = float(parts.get("share") or 100.0) / 100.0
    if not 0 < share <= 1:
        raise InvalidInput(f"fault {sentence!r}: a share is above 0 and at most 100 %")
    factor = float(parts.get("factor") or 1.0)
    if not MOST_FACTOR >= factor >= 1:
        raise InvalidInput(f"fault {sentence!r}: overload is from 1x to {MOST_FACTOR:.0f}x")
    after = float(parts.get("after") or 1.0)
    if not 0 < after <= factor:
        raise InvalidInput(
            f"fault {sentence!r}: afterwards the load is above 0x and at most {factor:g}x"
        )
    section, _, name = (parts.get("option") or "").partition(".")
    return Fault(
        sentence=" ".join(sentence.split()),
        verb=verb,
        service=parts.get("service") or "",
        which=_which(which),
        node=node,
        hold_s=hold_s,
        share=share,
        factor=factor,
        after=after,
        delay_s=float(parts.get("delay") or 0.0) / 1000,
        option=(section, name),
        value=parts.get("value") or "",
        network=parts.get("network") or "",
    )


def _which(word: str) -> Which:
    match word:
        case "random":
            return "random"
        case "all":
            return "all"
        case _:
            return "one"
