"""Scenarios other than identity, and the complete catalogue by name."""

from loadstone.rally.task.catalogue.identity import AUTHENTICATE, KEYSTONE
from loadstone.rally.task.catalogue.scenario import ArgType, Argument, CatalogueEntry

SLEEP = Argument("sleep", ArgType.NUMBER, "Seconds that an iteration sleeps.", 0, least=0)
PROBABILITY = Argument(
    "exception_probability",
    ArgType.NUMBER,
    "From 0, never, to 1, always.",
    0.5,
    least=0,
    most=1,
)
IMAGE = Argument("image", ArgType.REFERENCE, "id, name or regex of the image.", is_required=True)
FLAVOR = Argument("flavor", ArgType.REFERENCE, "id, name or regex of the flavor.", is_required=True)


def _whole(name: str, about: str, default: int | None, least: float | None = None) -> Argument:
    return Argument(name, ArgType.WHOLE, about, default, least=least)


def _dummy(name: str, about: str, *arguments: Argument, takes_any: bool = False) -> CatalogueEntry:
    platform = "openstack" if name == "openstack" else "default"
    return CatalogueEntry(f"Dummy.{name}", about, arguments, takes_any, platform=platform)


DUMMY = (
    _dummy("dummy", "Sleep.", SLEEP, takes_any=True),
    _dummy("openstack", "Sleep, with users of a cloud around it.", SLEEP, takes_any=True),
    _dummy(
        "dummy_exception",
        "Sleep, then fail.",
        _whole("size_of_message", "Characters of the message.", 1, least=1),
        Argument("sleep", ArgType.NUMBER, "Seconds that an iteration sleeps.", 1, least=0),
        Argument("message", ArgType.TEXT, "The message.", ""),
    ),
    _dummy("dummy_exception_probability", "Fail now and then.", PROBABILITY),
    _dummy("dummy_output", "Give random figures.", _whole("random_range", "Highest figure.", 25)),
    _dummy(
        "dummy_random_action",
        "Sleep in several actions.",
        _whole("actions_num", "Number of actions.", 5),
        Argument("sleep_min", ArgType.NUMBER, "Shortest sleep in seconds.", 0, least=0),
        Argument("sleep_max", ArgType.NUMBER, "Longest sleep in seconds.", 0, least=0),
    ),
    _dummy("dummy_random_fail_in_atomic", "Fail in an action now and then.", PROBABILITY),
    _dummy(
        "dummy_timed_atomic_actions",
        "Sleep longer in each action.",
        _whole("number_of_actions", "Number of actions.", 5),
        Argument("sleep_factor", ArgType.NUMBER, "Seconds more for each.", 1, least=0),
    ),
    _dummy(
        "failure",
        "Fail in chosen iterations.",
        Argument("sleep", ArgType.NUMBER, "Seconds that an iteration sleeps.", 0.1, least=0),
        _whole("from_iteration", "First iteration that fails.", 0),
        _whole("to_iteration", "Last iteration that fails.", 0),
        _whole("each", "Of these, every n-th fails.", 1, least=1),
    ),
)

URL = Argument("url", ArgType.URL, "Where to.", is_required=True)
STATUS = Argument("status_code", ArgType.WHOLE, "Status that is expected.", is_required=True)
HTTP = (
    CatalogueEntry(
        "HttpRequests.check_request",
        "Make one HTTP request and check its status.",
        (
            URL,
            Argument("method", ArgType.TEXT, "GET, POST, ...", is_required=True),
            STATUS,
        ),
        takes_any=True,
        platform="default",
    ),
    CatalogueEntry(
        "HttpRequests.check_random_request",
        "Make one of several HTTP requests and check its status.",
        (
            Argument("requests", ArgType.MAPPINGS, "The requests.", is_required=True, keys=(URL,)),
            STATUS,
        ),
        platform="default",
    ),
)


# Arguments of novaclient's servers.create, as task files have them -> openstacksdk's.
SERVER_NAMES = {
    "admin_pass": "admin_password",
    "availability_zone": "availability_zone",
    "block_device_mapping_v2": "block_device_mapping",
    "config_drive": "has_config_drive",
    "disk_config": "disk_config",
    "files": "personality",
    "key_name": "key_name",
    "max_count": "max_count",
    "meta": "metadata",
    "min_count": "min_count",
    "nics": "networks",
    "scheduler_hints": "scheduler_hints",
    "security_groups": "security_groups",
    "userdata": "user_data",
}
SERVER = tuple(Argument(name, ArgType.ANY, "Passed to Nova.") for name in SERVER_NAMES)


def _nova(name: str, about: str, *arguments: Argument) -> CatalogueEntry:
    return CatalogueEntry(
        f"NovaServers.{name}",
        about,
        (IMAGE, FLAVOR, *arguments, *SERVER),
        cleanup="cleanup",
        service="compute",
    )


AUTO_NIC = Argument(
    "auto_assign_nic", ArgType.FLAG, "Whether to take networks of context network in turn.", False
)
NOVA = (
    _nova("boot_server", "Boot a server.", AUTO_NIC),
    _nova(
        "boot_and_list_server",
        "Boot a server and list all servers.",
        Argument("detailed", ArgType.FLAG, "Whether the list has details.", True),
        AUTO_NIC,
    ),
    _nova(
        "boot_and_show_server",
        "Boot a server and get it by its id.",
        AUTO_NIC,
    ),
    _nova(
        "boot_and_delete_server",
        "Boot a server and delete it.",
        Argument("min_sleep", ArgType.NUMBER, "Shortest sleep between, in seconds.", 0, least=0),
        Argument("max_sleep", ArgType.NUMBER, "Longest sleep between, in seconds.", 0, least=0),
        Argument("force_delete", ArgType.FLAG, "Whether to force the deletion.", False),
        AUTO_NIC,
    ),
    CatalogueEntry(
        "NovaServers.list_servers",
        "List all servers of the user's project.",
        (Argument("detailed", ArgType.FLAG, "Whether the list has details.", True),),
        service="compute",
    ),
    CatalogueEntry(
        "NovaFlavors.list_flavors",
        "List flavors.",
        (
            Argument("detailed", ArgType.FLAG, "Whether the list has details.", True),
            Argument(
                "is_public",
                ArgType.FLAG,
                "Whether flavors of everybody are meant; null: all flavors, for administrators.",
                True,
                takes_null=True,
            ),
            Argument("marker", ArgType.TEXT, "The id of the flavor before the first one."),
            _whole("min_disk", "Least disk in GiB.", None, 0),
            _whole("min_ram", "Least memory in MB.", None, 0),
            _whole("limit", "Maximum number.", None, 1),
            Argument("sort_key", ArgType.TEXT, "The attribute that they are sorted by."),
            Argument("sort_dir", ArgType.TEXT, "asc or desc."),
        ),
        service="compute",
    ),
)

NEUTRON = (
    CatalogueEntry(
        "NeutronNetworks.create_and_list_networks",
        "Create a network and list all networks.",
        (
            Argument(
                "network_create_args",
                ArgType.MAPPING,
                "For the creation, without a name.",
                takes_null=True,
                keys=(Argument("name", ArgType.CHOSEN_NAME, "Must be left out."),),
                takes_more=True,
            ),
        ),
        cleanup="cleanup",
        service="network",
    ),
)
SCENARIOS = {
    entry.name: entry for entry in (*AUTHENTICATE, *KEYSTONE, *DUMMY, *HTTP, *NOVA, *NEUTRON)
}
