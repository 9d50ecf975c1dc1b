"""Scenarios beside Keystone's own, and the whole catalogue by name."""

from loadstone.task.catalogue.identity import AUTHENTICATE, KEYSTONE
from loadstone.task.catalogue.scenario import Argument, Entry, Kind

SLEEP = Argument("sleep", Kind.NUMBER, "Seconds that an iteration sleeps.", 0, least=0)
PROBABILITY = Argument(
    "exception_probability", Kind.NUMBER, "From 0, never, to 1, always.", 0.5, least=0, most=1
)
IMAGE = Argument("image", Kind.MAPPING, "id, name or regex of the image.", is_required=True)
FLAVOR = Argument("flavor", Kind.MAPPING, "id, name or regex of the flavor.", is_required=True)


def _whole(name: str, about: str, default: int, least: float | None = None) -> Argument:
    return Argument(name, Kind.WHOLE, about, default, least=least)


def _dummy(name: str, about: str, *arguments: Argument, takes_any: bool = False) -> Entry:
    platform = "openstack" if name == "openstack" else "default"
    return Entry(f"Dummy.{name}", about, arguments, takes_any, platform=platform)


DUMMY = (
    _dummy("dummy", "Sleep.", SLEEP, takes_any=True),
    _dummy("openstack", "Sleep, with users of a cloud around it.", SLEEP, takes_any=True),
    _dummy(
        "dummy_exception",
        "Sleep, then fail.",
        _whole("size_of_message", "Characters of the message.", 1, least=1),
        Argument("sleep", Kind.NUMBER, "Seconds that an iteration sleeps.", 1, least=0),
        Argument("message", Kind.TEXT, "The message.", ""),
    ),
    _dummy("dummy_exception_probability", "Fail now and then.", PROBABILITY),
    _dummy("dummy_output", "Give random figures.", _whole("random_range", "Highest figure.", 25)),
    _dummy(
        "dummy_random_action",
        "Sleep in several actions.",
        _whole("actions_num", "How many actions.", 5),
        Argument("sleep_min", Kind.NUMBER, "Shortest sleep in seconds.", 0, least=0),
        Argument("sleep_max", Kind.NUMBER, "Longest sleep in seconds.", 0, least=0),
    ),
    _dummy("dummy_random_fail_in_atomic", "Fail in an action now and then.", PROBABILITY),
    _dummy(
        "dummy_timed_atomic_actions",
        "Sleep longer in each action.",
        _whole("number_of_actions", "How many actions.", 5),
        Argument("sleep_factor", Kind.NUMBER, "Seconds more for each.", 1, least=0),
    ),
    _dummy(
        "failure",
        "Fail in chosen iterations.",
        Argument("sleep", Kind.NUMBER, "Seconds that an iteration sleeps.", 0.1, least=0),
        _whole("from_iteration", "First iteration that fails.", 0),
        _whole("to_iteration", "Last iteration that fails.", 0),
        _whole("each", "Of these, each so many-th.", 1, least=1),
    ),
)

URL = Argument("url", Kind.URL, "Where to.", is_required=True)
STATUS = Argument("status_code", Kind.WHOLE, "Status that is expected.", is_required=True)
HTTP = (
    Entry(
        "HttpRequests.check_request",
        "Make one HTTP request and check its status.",
        (
            URL,
            Argument("method", Kind.TEXT, "GET, POST, ...", is_required=True),
            STATUS,
        ),
        takes_any=True,
        platform="default",
        actions=("requests.check_request",),
    ),
    Entry(
        "HttpRequests.check_random_request",
        "Make one of several HTTP requests and check its status.",
        (
            Argument("requests", Kind.MAPPINGS, "The requests.", is_required=True, keys=(URL,)),
            STATUS,
        ),
        platform="default",
        actions=("requests.check_request",),
    ),
)


def _nova(name: str, about: str, actions: str, *arguments: Argument) -> Entry:
    return Entry(
        f"NovaServers.{name}",
        about,
        (IMAGE, FLAVOR, *arguments),
        takes_any=True,
        actions=tuple(actions.split()),
        cleanup="cleanup",
        cleanup_of=("nova",),
        service="compute",
    )


NOVA = (
    _nova(
        "boot_server",
        "Boot a server.",
        "nova.boot_server",
        Argument("auto_assign_nic", Kind.FLAG, "Whether to choose a network.", False),
    ),
    _nova(
        "boot_and_list_server",
        "Boot a server and list all servers.",
        "nova.boot_server nova.list_servers",
        Argument("detailed", Kind.FLAG, "Whether the list has details.", True),
    ),
    _nova(
        "boot_and_delete_server",
        "Boot a server and delete it.",
        "nova.boot_server nova.delete_server",
        Argument("min_sleep", Kind.NUMBER, "Shortest sleep between, in seconds.", 0, least=0),
        Argument("max_sleep", Kind.NUMBER, "Longest sleep between, in seconds.", 0, least=0),
        Argument("force_delete", Kind.FLAG, "Whether to force the deletion.", False),
    ),
)

SCENARIOS = {entry.name: entry for entry in (*AUTHENTICATE, *KEYSTONE, *DUMMY, *HTTP, *NOVA)}
