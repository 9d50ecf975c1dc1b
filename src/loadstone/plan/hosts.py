"""What the compute hosts of a cloud ask of its Keystone: `mix:cloud-100` is the load of 100.

On each host, nova-compute keeps a token for each section of nova.conf by which it calls another
service as itself: [placement], [neutron] and [service_user] (counted on Nova 34 in the lab). A
token in use is renewed two minutes before it ends (MIN_TOKEN_LIFE_SECONDS of keystoneauth1; [token]
expiration of Keystone is an hour). The service that is asked validates it when its cache has
forgotten it, after 300 s (token_cache_time of keystonemiddleware), if its processes share the cache
in memcached.

An idle host uses one token: the resource tracker asks Placement once a minute. Up to Nova 30 it
uses two, since heal_instance_info_cache_interval of nova.conf was 60 s and asked Neutron; from
Nova 31 on its default is -1. Whatever users do with the servers of a host uses all three. So a
host in use asks three times as much as an idle one, in the same shares. Agents that speak RPC only,
such as Neutron's, ask nothing.

Not in it: users, who log in and create servers (`loadstone size --boots`).
"""

import re

from loadstone.errors import InvalidInput

CLOUD = "mix:cloud-"
LOGIN, VALIDATION = "issue", "validate"  # scenarios
MOST_HOSTS = 1_000_000
TOKENS = 3  # of a host in use
TOKEN_S = 3600.0 - 120.0
CACHED_S = 300.0
LOGINS_RPS = TOKENS / TOKEN_S  # of a host in use
VALIDATIONS_RPS = TOKENS / CACHED_S
HOST_RPS = LOGINS_RPS + VALIDATIONS_RPS


def is_of_hosts(name: str) -> bool:
    """Return whether a scenario is the load of compute hosts."""
    return name.startswith(CLOUD)


def rates_of(name: str) -> dict[str, float]:
    """Return the rate of each scenario that so many hosts in use ask for, per second.

    InvalidInput if it is no number of hosts.
    """
    count = hosts_of(name)
    return {LOGIN: count * LOGINS_RPS, VALIDATION: count * VALIDATIONS_RPS}


def hosts_of(name: str) -> int:
    """Return the number of hosts in a name."""
    words = name.removeprefix(CLOUD)
    count = int(words) if re.fullmatch(r"[0-9]{1,7}", words) else 0
    if not 1 <= count <= MOST_HOSTS:
        raise InvalidInput(
            f"{name}: must be {CLOUD}HOSTS with 1 to {MOST_HOSTS:,} compute hosts, "
            f"such as {CLOUD}100"
        )
    return count


def hosts_at(rate_rps: float) -> float:
    """Return how many hosts in use ask for so many logins and validations per second."""
    return rate_rps / HOST_RPS
