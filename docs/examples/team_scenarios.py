"""Own scenarios: one that is a function over openstacksdk, one that is data."""

from loadstone.keystone.scenarios.model import Scenario
from loadstone.plan.script import Column, Step, text
from loadstone.rally.functions.plugin import scenario


@scenario("Team.list_servers")
def list_servers(context, times: int = 1, detailed: bool = True):
    """List the user's servers several times."""
    from loadstone.rally.functions.cloud import connect

    cloud = connect(context)
    for _ in range(times):
        with context.action("team.list_servers"):
            list(cloud.compute.servers(details=detailed))


DOMAINS = Scenario(
    name="Team.list_own_domains",
    title="own domains",
    request="GET /v3/auth/domains (as each user)",
    steps=(
        Step(
            action="team.list_own_domains",
            method="GET",
            path=text("/auth/domains"),
            headers=(("X-Auth-Token", (Column("token"),)),),
        ),
    ),
)
