"""The file of --federation."""

import base64

import pytest

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.federation_file import read_federation
from loadstone.target.choice import NamedTarget, secrets_of

FILE = """\
identity_provider: my idp
protocol: openid
project: load
issuer: http://127.0.0.1:8080/realms/cloud
client_id: loadstone
client_secret_file: secret.txt
users_file: users.csv
"""


def written(folder, text=FILE):
    (folder / "secret.txt").write_text("s3cret-of-client\n")
    (folder / "users.csv").write_text("username,password\nann,pa55-of-ann\n")
    path = folder / "federation.yaml"
    path.write_text(text)
    return path


def test_files_are_beside_the_file_and_their_secrets_are_known(tmp_path):
    found = read_federation(written(tmp_path), beyond_loopback=False)
    assert found.path == "/OS-FEDERATION/identity_providers/my%20idp/protocols/openid/auth"
    assert found.issuer.cloud.endpoint == Endpoint.parse("http://127.0.0.1:8080/realms/cloud")
    secrets = secrets_of(NamedTarget(cloud="mine", federation=found))
    as_sent = base64.b64encode(b"loadstone:s3cret-of-client").decode()
    assert secrets == {"s3cret-of-client", as_sent, "pa55-of-ann"}
    assert not any(secret in repr(found) for secret in secrets)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("project: load\n", "", "federation.yaml:1: project is missing"),
        ("protocol:", "protokol:", "federation.yaml:1: protocol is missing"),
        (
            "client_id: loadstone",
            "client_id: loadstone\ncolour: red",
            r"federation.yaml:\d: colour is not known; the fields are identity_provider, protocol",
        ),
        (
            "secret.txt",
            "none.txt",
            r":\d: client_secret_file .*none.txt: No such file",
        ),
        ("users.csv", "none.csv", r"federation.yaml:\d: users_file .*none.csv: No such file"),
        ("http://127.0.0.1:8080/realms/cloud", "idp.example", r"federation.yaml:\d: issuer: "),
        (FILE, "- a list", "must be a mapping with identity_provider, protocol, project, issuer"),
        ("protocol: openid", "protocol: {", r"federation.yaml:\d+: not YAML"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file(old, new, words, tmp_path):
    assert old in FILE
    with pytest.raises((InvalidInput, EnvironmentUnusable), match=words) as refused:
        read_federation(written(tmp_path, FILE.replace(old, new)), beyond_loopback=False)
    assert str(refused.value).startswith(f"--federation {tmp_path}/federation.yaml")
    assert "\n" not in str(refused.value)
