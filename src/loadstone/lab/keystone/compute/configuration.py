"""Configuration files of the compute cloud, as text."""

from loadstone.lab.keystone.compute.cloud import CloudLayout
from loadstone.lab.keystone.manage import REGION
from loadstone.lab.keystone.settings import MiddlewareCache, Option
from loadstone.lab.ports import HOST

NEVER_CACHED = "-1"  # of keystonemiddleware's token_cache_time, in seconds
DRIVER = "loadstone"  # binds ports of networks that no agent serves: inside/loadstone_ml2.py
HOUR_S = "3600"
# Those of oslo.log that are quieter than INFO, and nova.service, which says at DEBUG when a service
# listens to the message bus.
_QUIET = (
    *("amqp", "iso8601", "keystoneauth", "keystonemiddleware", "routes.middleware", "sqlalchemy"),
    *("stevedore", "taskflow", "urllib3.connectionpool", "urllib3.util.retry", "websocket"),
)
LOG_LEVELS = ",".join((*(f"{name}=WARN" for name in _QUIET), "nova.service=DEBUG"))


def files(cloud: CloudLayout) -> dict[str, tuple[Option, ...]]:
    """Return the options of each configuration file by its name."""
    return {
        "nova.conf": _nova(cloud),
        # A separate file, because nova-compute refuses to start with a database.
        "nova-db.conf": (
            ("api_database", "connection", cloud.database.connection_to("nova_api")),
            ("database", "connection", cloud.database.connection_to("nova_cell1")),
        ),
        "placement.conf": (
            ("api", "auth_strategy", "keystone"),
            ("placement_database", "connection", cloud.database.connection_to("placement")),
            *_authtoken(cloud, "placement"),
        ),
        "glance-api.conf": _glance(cloud),
        "neutron.conf": _neutron(cloud),
    }


def _nova(cloud: CloudLayout) -> tuple[Option, ...]:
    default = {
        "my_ip": HOST,
        "host": "fake1",
        "state_path": str(cloud.data / "nova"),
        # The other fake drivers create a new node in each process, which Nova refuses.
        "compute_driver": "fake.FakeDriverWithoutFakeNodes",
        "concurrency_backend": "threading",
        "default_log_levels": LOG_LEVELS,
        "transport_url": cloud.bus,
        "instance_usage_audit": "false",
        "heal_instance_info_cache_interval": "-1",
        "service_down_time": "60",
        "report_interval": "10",
        # The default is once a minute; each is a request to Placement, and so perhaps to Keystone.
        "update_resources_interval": HOUR_S,
    }
    return (
        *_section("DEFAULT", default),
        ("conductor", "workers", "1"),
        ("scheduler", "workers", "1"),
        ("api", "auth_strategy", "keystone"),
        ("vnc", "enabled", "false"),
        ("oslo_concurrency", "lock_path", str(cloud.folder / "run" / "locks")),
        ("filter_scheduler", "track_instance_changes", "false"),
        ("cache", "enabled", "true"),
        ("cache", "backend", "oslo_cache.dict"),
        ("oslo_messaging_notifications", "driver", "noop"),
        ("oslo_messaging_rabbit", "heartbeat_in_pthread", "false"),
        *_section("quota", {"instances": "-1", "cores": "-1", "ram": "-1"}),
        *_authtoken(cloud, "nova"),
        *_client(cloud, "placement"),
        *_client(cloud, "neutron"),
        *_client(cloud, "service_user"),
        ("glance", "region_name", REGION),
        ("service_user", "send_service_user_token", str(cloud.sends_service_tokens).lower()),
    )


def _glance(cloud: CloudLayout) -> tuple[Option, ...]:
    pipelines = cloud.environment / "etc" / "glance" / "glance-api-paste.ini"
    return (
        ("DEFAULT", "enabled_backends", "local:file"),
        ("DEFAULT", "workers", "1"),
        ("database", "connection", cloud.database.connection_to("glance")),
        ("glance_store", "default_backend", "local"),
        ("local", "filesystem_store_datadir", str(cloud.data / "images")),
        ("os_glance_staging_store", "filesystem_store_datadir", str(cloud.data / "staging")),
        ("os_glance_tasks_store", "filesystem_store_datadir", str(cloud.data / "tasks")),
        ("oslo_concurrency", "lock_path", str(cloud.folder / "run" / "locks")),
        ("paste_deploy", "flavor", "keystone"),
        ("paste_deploy", "config_file", str(pipelines)),
        *_authtoken(cloud, "glance"),
    )


def _neutron(cloud: CloudLayout) -> tuple[Option, ...]:
    default = {
        "core_plugin": "ml2",
        "service_plugins": "",
        "transport_url": cloud.bus,
        "auth_strategy": "keystone",
        "api_paste_config": str(cloud.environment / "etc" / "neutron" / "api-paste.ini"),
        "state_path": str(cloud.data / "neutron"),
        "notify_nova_on_port_status_changes": "false",
        "notify_nova_on_port_data_changes": "false",
        "rpc_workers": "0",
    }
    ml2 = {
        "type_drivers": "local",
        "tenant_network_types": "local",
        "mechanism_drivers": DRIVER,
        "extension_drivers": "",
    }
    return (
        *_section("DEFAULT", default),
        ("database", "connection", cloud.database.connection_to("neutron")),
        ("oslo_concurrency", "lock_path", str(cloud.folder / "run" / "locks")),
        ("oslo_messaging_notifications", "driver", "noop"),
        ("quotas", "quota_port", "-1"),
        *_section("ml2", ml2),
        *_authtoken(cloud, "neutron"),
    )


def _login(cloud: CloudLayout, user: str) -> dict[str, str]:
    return {
        "auth_url": cloud.auth_url,
        "auth_type": "password",
        "username": user,
        "password": cloud.password.replace("$", "$$"),
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": REGION,
    }


def _client(cloud: CloudLayout, section: str) -> tuple[Option, ...]:
    return _section(section, _login(cloud, "nova"))


def _authtoken(cloud: CloudLayout, user: str) -> tuple[Option, ...]:
    options = {
        "www_authenticate_uri": cloud.auth_url,
        **_login(cloud, user),
        "service_token_roles": "service",
        "service_token_roles_required": "true",
    }
    if cloud.tokens is MiddlewareCache.OFF:
        options["token_cache_time"] = NEVER_CACHED
    elif cloud.tokens is MiddlewareCache.MEMCACHED:
        options["memcached_servers"] = f"{HOST}:{cloud.memcached}"
    return _section("keystone_authtoken", options)


def _section(name: str, options: dict[str, str]) -> tuple[Option, ...]:
    return tuple((name, option, value) for option, value in options.items())
