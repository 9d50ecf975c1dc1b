"""What a real Keystone says to right and wrong credentials."""

import pytest
import requests

from loadstone.cloud import connect, from_environment
from loadstone.errors import EnvironmentUnusable

pytestmark = pytest.mark.live


@pytest.fixture
def variables(lab_keystone):
    return lab_keystone.environment_variables()


@pytest.mark.parametrize("path", ["", "/", "/v3", "/v3/"])
def test_any_spelling_of_the_url_leads_to_v3(variables, path):
    base = variables["OS_AUTH_URL"].removesuffix("/v3")
    with connect(from_environment({**variables, "OS_AUTH_URL": base + path})) as access:
        assert access.identity_url == f"{base}/v3"


@pytest.mark.parametrize(
    "change",
    [
        {"OS_USER_DOMAIN_ID": "", "OS_USER_DOMAIN_NAME": "Default"},
        {"OS_PROJECT_DOMAIN_ID": "", "OS_PROJECT_DOMAIN_NAME": "Default"},
        {"OS_USER_DOMAIN_ID": "", "OS_PROJECT_DOMAIN_ID": "", "OS_DEFAULT_DOMAIN_ID": "default"},
        {"OS_PROJECT_NAME": "", "OS_TENANT_NAME": "admin"},
        {"OS_PROJECT_NAME": "", "OS_PROJECT_DOMAIN_ID": "", "OS_SYSTEM_SCOPE": "all"},
        {"OS_AUTH_TYPE": "v3password"},
    ],
)
def test_ways_to_name_user_and_scope(variables, change):
    with connect(from_environment({**variables, **change})) as access:
        assert access.token()


@pytest.mark.parametrize(
    "change",
    [{"OS_PASSWORD": "wrong"}, {"OS_USERNAME": "nobody"}, {"OS_PROJECT_NAME": "nowhere"}],
)
def test_wrong_credentials_are_one_line(variables, change):
    cloud = from_environment({**variables, **change})
    with pytest.raises(EnvironmentUnusable, match="refused the credentials") as problem:
        connect(cloud)
    assert "\n" not in str(problem.value)
    assert cloud.who in str(problem.value)


def test_an_application_credential_connects(variables):
    with connect(from_environment(variables)) as access:
        user = access.session.get_user_id()
        url = f"{access.identity_url}/users/{user}/application_credentials"
        # Not by keystoneauth, which repeats a request whose response is late.
        answer = requests.post(
            url,
            json={"application_credential": {"name": "loadstone-test", "secret": "s3cret"}},
            headers={"X-Auth-Token": access.token()},
            timeout=500,
        )
        assert answer.status_code == 201, answer.text
        made = answer.json()["application_credential"]
        try:
            env = {
                "OS_AUTH_URL": variables["OS_AUTH_URL"],
                "OS_AUTH_TYPE": "v3applicationcredential",
                "OS_APPLICATION_CREDENTIAL_ID": made["id"],
                "OS_APPLICATION_CREDENTIAL_SECRET": "s3cret",
            }
            with connect(from_environment(env)) as as_application:
                assert as_application.token()
        finally:
            access.session.delete(f"{url}/{made['id']}")
