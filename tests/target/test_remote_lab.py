"""A lab on another host as a target; the host and its Keystone are fakes."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.diagnosis.demand import Setup
from loadstone.keystone.rust import UNSERVED
from loadstone.lab.lab_host import RemoteDeployment
from loadstone.target.choice import NamedTarget
from loadstone.target.measured import remote_target
from loadstone.target.target import Target


@contextmanager
def remote_lab(choice: NamedTarget, **known) -> Iterator[Target]:
    """Connect to a lab on a host, of which this is known."""
    host = SimpleNamespace(
        name="far",
        facts=SimpleNamespace(rows=()),
        failure=lambda: None,
        explain=lambda _: (),
        call=lambda *_, **__: ((), ()),
    )
    with serving(FakeKeystone().handler()) as url:
        variables = {
            "OS_AUTH_URL": f"{url}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        }
        lab = RemoteDeployment("it", url, (), Setup(), variables, **known)
        with remote_target(host, lab, print, choice) as target:
            yield target


@pytest.mark.parametrize(("is_in_rust", "unserved"), [(True, UNSERVED), (False, ())])
def test_what_keystone_in_rust_lacks_is_known_of_a_lab_on_a_host(is_in_rust, unserved):
    with remote_lab(NamedTarget(lab="it"), is_in_rust=is_in_rust) as target:
        assert target.unserved == unserved


def test_what_is_watched_beside_a_lab_on_a_host_has_series_of_its_own():
    watched = ("memcached://127.0.0.1:1", "memcached://127.0.0.1:2")
    with remote_lab(NamedTarget(lab="it", watched=watched), sources=("memcached",)) as target:
        names = [one.source for one in target.watch.monitor.missing]  # nothing listens there
    assert names == ["memcached-2", "memcached-3"]
