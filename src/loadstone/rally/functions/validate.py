"""Rally's Authenticate.validate_*: issues a token, then uses it on a service several times."""

from collections.abc import Callable
from typing import Any

from openstack.exceptions import raise_from_response

from loadstone.engine.callables.context import Context
from loadstone.rally.functions.cloud import connect

_NO_IMAGE = "__intentionally_non_existent_image___"
Use = Callable[[Any], object]


def validate_nova(context: Context, repetitions: int) -> None:
    """List flavors."""
    _validate(context, "nova", "compute", repetitions, lambda nova: list(nova.flavors()))


def validate_glance(context: Context, repetitions: int) -> None:
    """List images with a name that does not exist."""
    _validate(
        context, "glance", "image", repetitions, lambda glance: list(glance.images(name=_NO_IMAGE))
    )


def validate_cinder(context: Context, repetitions: int) -> None:
    """List volume types."""
    _validate(context, "cinder", "block_storage", repetitions, lambda cinder: list(cinder.types()))


def validate_neutron(context: Context, repetitions: int) -> None:
    """List networks."""
    _validate(context, "neutron", "network", repetitions, lambda neutron: list(neutron.networks()))


def validate_heat(context: Context, repetitions: int) -> None:
    """List stacks with a filter that matches none."""

    def use(heat: Any) -> None:
        raise_from_response(heat.get("/stacks", params={"limit": "0"}))

    _validate(context, "heat", "orchestration", repetitions, use)


def validate_octavia(context: Context, repetitions: int) -> None:
    """List load balancers."""
    _validate(
        context, "octavia", "load_balancer", repetitions, lambda lb: list(lb.load_balancers())
    )


def validate_ceilometer(context: Context, repetitions: int) -> None:
    """List meters."""
    use = _getting(context, "metering", "/v2/meters")
    _validate(context, "ceilometer", "session", repetitions, use)


def validate_monasca(context: Context, repetitions: int) -> None:
    """List metrics with a filter that matches none."""
    use = _getting(context, "monitoring", "/metrics?limit=0")
    _validate(context, "monasca", "session", repetitions, use)


def _validate(context: Context, name: str, part: str, repetitions: int, use: Use) -> None:
    with connect(context, fresh=True) as cloud:
        # The proxy may first ask the service for its versions, which is not part of the action.
        service = getattr(cloud, part)
        with context.action(f"authenticate.validate_{name}"):
            for _ in range(repetitions):
                use(service)


def _getting(context: Context, service_type: str, path: str) -> Use:
    """Return a call of a service that openstacksdk does not support."""
    place = {
        "service_type": service_type,
        "interface": context.settings.get("interface", "public"),
        "region_name": context.settings.get("region"),
    }

    def get(session: Any) -> None:
        raise_from_response(session.get(path, endpoint_filter=place, raise_exc=False))

    return get
