"""A lab on another host as a target; the host and its Keystone are fakes."""

from types import SimpleNamespace

import pytest
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.diagnosis.demand import Setup
from loadstone.keystone.rust import UNSERVED
from loadstone.lab.lab_host import RemoteDeployment
from loadstone.target.choice import NamedTarget
from loadstone.target.measured import remote_target


@pytest.mark.parametrize(("is_in_rust", "unserved"), [(True, UNSERVED), (False, ())])
def test_what_keystone_in_rust_lacks_is_known_of_a_lab_on_a_host(is_in_rust, unserved):
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
        lab = RemoteDeployment("it", url, (), Setup(), variables, is_in_rust=is_in_rust)
        with remote_target(host, lab, print, NamedTarget(lab="it")) as target:
            assert target.unserved == unserved
