import json

import pytest
from authority import Authority
from cryptography.hazmat.primitives import serialization

from loadstone.cloud import connect, from_environment
from loadstone.errors import EnvironmentUnusable, InvalidInput

COMPLETE = {
    "OS_AUTH_URL": "http://127.0.0.1:5000/v3",
    "OS_USERNAME": "admin",
    "OS_PASSWORD": "s3cret",
    "OS_PROJECT_NAME": "admin",
    "OS_USER_DOMAIN_NAME": "Default",
    "OS_PROJECT_DOMAIN_NAME": "Default",
}


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("OS_AUTH_URL", "OS_AUTH_URL is missing"),
        ("OS_USERNAME", "OS_USERNAME is missing"),
        ("OS_PASSWORD", "OS_PASSWORD is missing"),
        ("OS_USER_DOMAIN_NAME", "OS_USER_DOMAIN_NAME is missing"),
        ("OS_PROJECT_DOMAIN_NAME", "OS_PROJECT_DOMAIN_NAME is missing"),
    ],
)
def test_a_missing_variable_is_named(without, said):
    env = {key: value for key, value in COMPLETE.items() if key != without}
    with pytest.raises(InvalidInput, match=said) as problem:
        from_environment(env)
    assert "\n" not in str(problem.value)
    assert "s3cret" not in str(problem.value)


def test_an_empty_environment_says_how_to_choose_a_target():
    with pytest.raises(InvalidInput, match="--lab NAME or --cloud NAME, or set OS_AUTH_URL"):
        from_environment({"HOME": "/root"})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:5000/v3", "must begin with http"),
        ("http:///v3", "names no host"),
        ("http://127.0.0.1:99999/v3", "[Pp]ort"),
        ("http://127.0.0.1:0/v3", "its port must be from 1 to 65535"),
        ("http://user:pw@127.0.0.1:5000/v3", "only scheme, host, port and path"),
        ("http://[::1/v3", "IPv6"),
        ("http://127.0.0.1:5000/v3 ", "it contains white space"),
        ("http://127.0.0.1:5000/v3\n", "it contains white space"),
    ],
)
def test_a_url_that_is_none_is_refused_with_its_variable(url, said):
    with pytest.raises(InvalidInput, match=said) as problem:
        from_environment({**COMPLETE, "OS_AUTH_URL": url})
    assert str(problem.value).startswith("OS_AUTH_URL")
    assert "pw" not in str(problem.value)


def test_version_2_is_refused():
    with pytest.raises(InvalidInput, match="v2"):
        from_environment({**COMPLETE, "OS_IDENTITY_API_VERSION": "2.0"})
    env = {key: value for key, value in COMPLETE.items() if "DOMAIN" not in key}
    with pytest.raises(InvalidInput, match="choose v3password"):
        from_environment(env | {"OS_AUTH_TYPE": "v2password"})


def test_a_ca_file_that_is_not_there_is_named():
    with pytest.raises(InvalidInput, match=r"OS_CACERT: /no/such\.pem"):
        from_environment({**COMPLETE, "OS_CACERT": "/no/such.pem"})


def test_unknown_kinds_of_authentication_are_refused():
    with pytest.raises(InvalidInput, match="nosuchplugin"):
        from_environment({**COMPLETE, "OS_AUTH_TYPE": "nosuchplugin"})


def test_tls_settings_arrive(tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate_and_key = authority.issue("client").read_bytes()
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_bytes(certificate_and_key)
    given = {
        "OS_CACERT": str(tmp_path / "ca"),
        "OS_CERT": str(tmp_path / "cert"),
        "OS_KEY": str(tmp_path / "key"),
    }
    tls = from_environment({**COMPLETE, **given}).tls
    assert (tls.verify, tls.ca_file) == (True, given["OS_CACERT"])
    assert (tls.cert_file, tls.key_file) == (given["OS_CERT"], given["OS_KEY"])
    assert not from_environment({**COMPLETE, "OS_INSECURE": "true"}).tls.verify


def test_no_representation_shows_the_password():
    cloud = from_environment(COMPLETE)
    assert "s3cret" not in repr(cloud)
    assert "s3cret" not in str(cloud)


def test_braces_in_a_password_stay_braces(fake, variables):
    odd = '{user} %s "\\ ü'
    fake.add("users", "odd", password=odd)
    with connect(from_environment({**variables, "OS_USERNAME": "odd", "OS_PASSWORD": odd})):
        sent = fake.bodies[-1]["auth"]["identity"]["password"]["user"]["password"]
    assert sent == odd


def test_a_variable_with_braces_that_name_no_setting_is_named():
    with pytest.raises(InvalidInput, match=r"^OS_WIBBLE has braces, .* or remove it$"):
        from_environment(COMPLETE | {"OS_USERNAME": "{u}", "OS_WIBBLE": "x{y}"})


@pytest.mark.parametrize(
    ("extra", "scope"),
    [
        ({}, {"project": {"name": "admin", "domain": {"id": "default"}}}),
        ({"OS_PROJECT_NAME": "", "OS_SYSTEM_SCOPE": "all"}, {"system": {"all": True}}),
        ({"OS_PROJECT_NAME": "", "OS_DOMAIN_ID": "d1"}, {"domain": {"id": "d1"}}),
        ({"OS_PROJECT_NAME": "", "OS_PROJECT_ID": "p1"}, {"project": {"id": "p1"}}),
    ],
)
def test_each_scope_is_asked_for_as_given(fake, variables, extra, scope):
    with connect(from_environment({**variables, **extra})):
        assert fake.bodies[-1]["auth"]["scope"] == scope


def test_an_application_credential_is_enough(url):
    env = {
        "OS_AUTH_URL": url,
        "OS_AUTH_TYPE": "v3applicationcredential",
        "OS_APPLICATION_CREDENTIAL_ID": "ac1",
        "OS_APPLICATION_CREDENTIAL_SECRET": "s3cret",
    }
    cloud = from_environment(env)
    assert cloud.who == "application credential ac1"
    asked = json.dumps(cloud.auth.get_cache_id_elements())
    assert "ac1" in asked


def test_without_a_project_or_domain_it_is_said_why_a_role_lacks():
    env = {key: value for key, value in COMPLETE.items() if "PROJECT" not in key}
    assert from_environment(env).lacks_role("to prepare users") == (
        "user admin needs the role admin to prepare users, but no project is chosen: "
        "OS_PROJECT_NAME (or a domain, or system_scope) is missing"
    )
    for scoped in (COMPLETE, env | {"OS_SYSTEM_SCOPE": "all"}, env | {"OS_DOMAIN_NAME": "Default"}):
        assert from_environment(scoped).lacks_role("to prepare users") == (
            "user admin needs the role admin to prepare users"
        )


@pytest.mark.parametrize(
    ("extra", "interface"),
    [
        ({}, "public"),
        ({"OS_INTERFACE": "internal"}, "internal"),
        ({"OS_ENDPOINT_TYPE": "internalURL"}, "internalURL"),  # keystoneauth reads both forms
    ],
)
def test_the_interface_of_other_services_arrives(extra, interface):
    assert from_environment({**COMPLETE, **extra}).interface == interface


@pytest.mark.parametrize(
    ("given", "secrets"),
    [
        ({}, {"s3cret"}),
        ({"OS_AUTH_TYPE": "v3password", "OS_USER_DOMAIN_ID": "default"}, {"s3cret"}),
        ({"OS_AUTH_TYPE": "v3totp", "OS_PASSWORD": "", "OS_PASSCODE": "123456"}, {"123456"}),
    ],
)
def test_only_secret_settings_of_a_login_are_hidden(given, secrets):
    assert from_environment(COMPLETE | given).secrets == secrets


def test_the_endpoint_of_an_oauth_client_is_not_a_secret():
    env = {
        "OS_AUTH_URL": "http://127.0.0.1:5000/v3",
        "OS_AUTH_TYPE": "v3oauth2clientcredential",
        "OS_OAUTH2_ENDPOINT": "http://127.0.0.1:5000/v3/OS-OAUTH2/token",
        "OS_OAUTH2_CLIENT_ID": "client",
        "OS_OAUTH2_CLIENT_SECRET": "s3cret",
    }
    assert from_environment(env).secrets == {"s3cret"}


def test_a_missing_library_of_an_authentication_is_named():
    env = {"OS_AUTH_URL": "http://127.0.0.1:5000/v3", "OS_AUTH_TYPE": "v3kerberos"}
    with pytest.raises(
        EnvironmentUnusable, match=r"pip install keystoneauth1\[kerberos\]"
    ) as problem:
        from_environment(env)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("kind", ["v3samlpassword", "v3adfspassword"])
def test_an_authentication_by_saml_names_the_library_that_is_missing(kind, monkeypatch):
    def without_lxml(*_, **__):  # as keystoneauth's module fails
        raise AttributeError("'NoneType' object has no attribute '_Element'")

    monkeypatch.setattr("openstack.config.OpenStackConfig.get_one", without_lxml)
    monkeypatch.setattr("loadstone.cloud.read.find_spec", lambda _: None)
    env = {"OS_AUTH_URL": "http://127.0.0.1:5000/v3", "OS_AUTH_TYPE": kind}
    with pytest.raises(EnvironmentUnusable, match=rf"^OS_AUTH_TYPE: {kind} needs .* lxml"):
        from_environment(env)


OVER_TLS = COMPLETE | {"OS_AUTH_URL": "https://127.0.0.1:5000/v3"}


def test_a_ca_file_without_certificates_is_named(tmp_path):
    (tmp_path / "ca.der").write_bytes(b"0\x82")
    with pytest.raises(InvalidInput, match=r"^OS_CACERT: .*ca\.der has no certificate in PEM"):
        from_environment(OVER_TLS | {"OS_CACERT": str(tmp_path / "ca.der")})


def test_a_clients_certificate_needs_its_own_key(tmp_path):
    authority = Authority(tmp_path, "ca")
    own, other = (str(authority.issue(name)) for name in ("own", "other"))
    assert from_environment(OVER_TLS | {"OS_CERT": own}).tls.key_file == own
    with pytest.raises(InvalidInput, match=r"^OS_CERT: .*\(key values mismatch\)"):
        from_environment(OVER_TLS | {"OS_CERT": own, "OS_KEY": other})
    with pytest.raises(InvalidInput, match=r"^OS_CERT: .*ca\.pem and the key in it cannot be used"):
        from_environment(OVER_TLS | {"OS_CERT": str(authority.file)})


def test_an_encrypted_key_is_refused_without_asking_for_its_passphrase(tmp_path):
    authority = Authority(tmp_path, "ca")
    key = tmp_path / "key.pem"
    key.write_bytes(
        authority.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"s3cret"),
        )
    )
    with pytest.raises(InvalidInput, match=r"^OS_KEY: .*key\.pem is encrypted"):
        from_environment(OVER_TLS | {"OS_CERT": str(authority.file), "OS_KEY": str(key)})
