"""What counts as a secret, and what is left of it."""

import pytest

from loadstone.system.redaction import (
    MASK,
    Redaction,
    is_secret_variable,
    masked,
    masked_command,
    secrets_in,
)

SECRET = "hunter2-Zq/9\"it's"


@pytest.mark.parametrize(
    "given",
    [
        {"admin_pass": SECRET},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"X-Auth-Token": SECRET, "x-subject-token": SECRET, "Cookie": SECRET}},
        {"auth": ["admin", SECRET]},
        {"passwords": ["one-of-them", SECRET]},
        {"params": {"token": SECRET}},
        {"credentials": {"blob": SECRET}},
        {"password": {"user": {"name": "ann", "password": SECRET}}},
    ],
)
def test_secrets_are_known_by_their_names_and_places(given):
    assert SECRET not in str(masked(given))
    assert any(SECRET in found for found in secrets_in(given))


@pytest.mark.parametrize(
    "given",
    [
        {"headers": {"X-Anything": "Bearer S3CR3T-9"}},
        {"headers": {"X-Key": "S3CR3T-9"}},
        {"headers": {"X-Session": "S3CR3T-9"}},
        {"headers": {"X-Whatever-It-Is-Called": "S3CR3T-9"}},
        {"note": "Bearer S3CR3T-9"},
        {"note": "sent with bearer S3CR3T-9, twice"},
        {"url": "http://host/blob?sv=1&sig=S3CR3T-9"},
        {"url": "http://host/?X-Amz-Signature=S3CR3T-9&X-Amz-Date=1"},
        {"url": "http://host/?key=S3CR3T-9"},
        {"params": {"key": "S3CR3T-9", "sig": "S3CR3T-9"}},
        {"json": {"totp": "S3CR3T-9"}},
        {"json": {"auth": {"identity": {"totp": {"user": {"passcode": "S3CR3T-9"}}}}}},
        {"json": {"user": {"pin": "S3CR3T-9"}}},
        {"json": {"sessionKey": "S3CR3T-9", "sessionId": "S3CR3T-9"}},
        {"data": "user=ann&totp=S3CR3T-9"},
        {"data": '{"pin": "S3CR3T-9"}'},
        {"data": "-----BEGIN RSA PRIVATE KEY-----\nS3CR3T-9\n-----END RSA PRIVATE KEY-----"},
        {"data": "token_lifetime: password=S3CR3T-9"},
        {"note": "host: openstack --os-password S3CR3T-9 ended with 1"},
        {"note": "host: curl -u ann:S3CR3T-9 ended with 1"},
    ],
)
def test_secrets_are_known_by_short_names_schemes_and_headers(given):
    assert "S3CR3T-9" not in str(masked(given))
    assert any("S3CR3T-9" in found for found in secrets_in(given))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("http://ann:s3cr3t@host/v3", "s3cr3t"),
        ("http://host/?x=1&token=s3cr3t&y=2", "s3cr3t"),
        ('{"user": "ann", "password": "a s3cr3t"}', "a s3cr3t"),
        ("user=ann&password=s3%20cr3t", "s3 cr3t"),
    ],
)
def test_secrets_in_urls_and_bodies_are_found(text, secret):
    assert secret in secrets_in({"data": text})
    assert "cr3t" not in masked({"data": text})["data"]
    assert "ann" not in text or "ann" in masked(text) or "@" in text


@pytest.mark.parametrize(
    "command",
    [
        "curl -u admin:s3cr3t http://x/",
        "curl -uadmin:s3cr3t http://x/",
        "curl --user=admin:s3cr3t http://x/",
        "sh -c 'curl --user \"admin:s3cr3t\" http://x/ | tee out'",
        "env OS_PASSWORD=s3cr3t openstack token issue",
        "openstack --os-password s3cr3t token issue",
        "curl -H 'X-Auth-Token: s3cr3t' http://x/",
        "curl -H 'Authorization: Basic YWRtaW46czNjcjN0' http://x/",  # admin:s3cr3t
        "curl http://admin:s3cr3t@x/",
        "sshpass -ps3cr3t ssh host",
        "mysql -ps3cr3t -h db",
        "sudo -u root /usr/bin/mysql -u root -ps3cr3t",
        "sh -c 'mariadb-dump -ps3cr3t; true'",
        "mongosh -p s3cr3t",
        "docker login -u ann -p s3cr3t registry",
        "redis-cli -a s3cr3t ping",
        "ldapsearch -x -D cn=admin -w s3cr3t",
        "rabbitmqctl -n rabbit@host add_user openstack s3cr3t",
        "docker exec rabbit rabbitmqctl change_password openstack s3cr3t",
        "htpasswd -bc /etc/nginx/users ann s3cr3t",
        "mysqladmin -u root password s3cr3t",
        "redis-cli AUTH s3cr3t",
        "keytool -list -storepass s3cr3t",
        "curl --oauth2-bearer s3cr3t http://x/",
        "curl --oauth2-bearer=s3cr3t http://x/",
        "curl -H 'X-Anything: Bearer s3cr3t' http://x/",
        "curl -H 'X-Key: s3cr3t' http://x/",
        "curl '-HAuthorization: Bearer s3cr3t' http://x/",
        "curl -HX-Auth-Token:s3cr3t http://x/",
        "tool --password: s3cr3t http://x/",
        "curl -b session=s3cr3t http://x/",
        "curl -d 'pin=s3cr3t' http://x/",
        'curl --json \'{"totp": "s3cr3t"}\' http://x/',
        "curl 'http://x/?sig=s3cr3t&a=1'",
        "env MYSQL_PWD=s3cr3t mysql",
        "aws configure set aws_secret_access_key s3cr3t",
        "openssl rsa -passin pass:s3cr3t",
        "smbclient -U ann%s3cr3t //host/share",
        "wget --http-password=s3cr3t http://x/",
    ],
)
def test_secrets_in_the_command_of_a_hook_are_found(command):
    hidden = masked({"sys_call": command})["sys_call"]
    assert "s3cr3t" not in hidden
    assert "YWRtaW46czNjcjN0" not in hidden
    assert MASK in hidden
    assert "s3cr3t" in secrets_in({"sys_call": command})


def test_only_the_value_of_an_attached_header_is_hidden():
    hidden = masked({"sys_call": "curl '-HAuthorization: Bearer s3cr3t-9' -HAccept:text http://x/"})
    assert hidden["sys_call"] == f"curl '-HAuthorization: {MASK}' '-HAccept: text' http://x/"


@pytest.mark.parametrize(
    "given",
    [
        {"password_length": 10, "token": True, "tokens_path": "/v3/tokens", "name": "token"},
        {"sys_call": "sh -c 'echo $HOME; exit 3'"},
        {"methods": ["password"], "auth": ["one"], "url": "http://host:5000/v3"},
        {"sort_key": "created_at", "public_key": "ssh-rsa", "keyboard": "x", "spin": "y"},
        {
            "headers": {
                "Accept": "application/json",
                "Content-Type": "text/plain",
                "User-Agent": "x",
            }
        },
        {"headers": {"OpenStack-API-Version": "identity 3.14"}},
        {"note": "Basic authentication by a token provider; bearer tokens are not used"},
        {"sys_call": "docker run -p 8080:80 image"},
        {"sys_call": "rsync -a host:/folder /elsewhere"},
        {"sys_call": "grep -E a:b -H file"},
        {"session": {"user": "ann"}, "key": ["a", "b"]},
    ],
)
def test_what_is_no_secret_stays(given):
    assert masked(given) == given
    assert not secrets_in(given)


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [
        "x",
        "a.",
        "a-",
        "eyJ",
        "a=",
        "://",
        "token ",
        "key: ",
        "cookie:",
        " ",
        "pass:",
        "-----BEGIN ",
    ],
)
def test_a_megabyte_of_anything_is_masked_in_proportion_to_its_length(unit):
    text = unit * (1_000_000 // len(unit))
    masked({"note": text})  # hours if the time grew with the square


def test_numbers_under_secret_names_are_masked():
    assert masked({"admin_pass": 123456, "pins": [1]}) == {"admin_pass": MASK, "pins": [1]}


def test_a_known_secret_is_replaced_in_all_its_spellings():
    hidden = Redaction(frozenset({SECRET, "key word", "short", "123456"}))
    assert hidden.text(f"a {SECRET} b") == f"a {MASK} b"
    assert hidden.text('\\"hunter2-Zq/9\\"it\'s').endswith(MASK)
    assert hidden.text("?x=key%20word&y=key+word") == f"?x={MASK}&y={MASK}"
    # A short value or a number is only known where it stands alone.
    assert hidden.text("shorter short") == f"shorter {MASK}"
    assert hidden.text("0.123456 s, 1234567, pin 123456") == f"0.123456 s, 1234567, pin {MASK}"


def test_data_stays_json_and_its_keys_stay():
    hidden = Redaction(frozenset({SECRET, "users", "1234"}))
    inner = '{"users": "users", "times": 1234}'
    assert hidden.data({"users": [SECRET, 1234], "status": "users", "given": inner}) == {
        "users": [MASK, 1234],
        "status": MASK,
        "given": f'{{"users": "{MASK}", "times": 1234}}',
    }
    assert hidden.data({"status": "users"}, frozenset({"status"})) == {"status": "users"}


def test_a_redaction_does_not_show_what_it_hides():
    assert SECRET not in repr(Redaction(frozenset({SECRET})))


def test_a_variable_of_a_command_is_secret_by_its_last_word():
    names = ("DB_PASS", "ADMIN_TOKEN", "API_KEY", "OS_PASSWORD")
    assert all(map(is_secret_variable, names))
    settings = (
        "CPU_PIN",
        "MAX_TOKENS",
        "USE_AUTH",
        "TOKEN_PROVIDER",
        "TOKEN_CACHE_TIME",
        "WORKERS",
        "SSL_KEY_FILE",
        "HASH_ROUNDS",
    )
    assert not any(map(is_secret_variable, settings))


def test_an_option_of_keystone_is_secret_by_its_name_and_not_by_its_section():
    """A command to repeat a measurement must have its settings."""
    plain = ["--with=conf.token.cache_on_issue=true", "--set", "conf.credential.caching=false"]
    assert masked_command(["prove", *plain]) == ["prove", *plain]
    assert masked_command(["prove", "--set", "token=jws"]) == ["prove", "--set", "token=jws"]
    assert masked_command(["x", "--set", "token=abc-123"]) == ["x", "--set", "token=***"]
    secret = ["--set", "conf.ldap.password=sesame-12", "--set", "conf.DEFAULT.admin_token=abc-123"]
    hidden = ["--set", "conf.ldap.password=***", "--set", "conf.DEFAULT.admin_token=***"]
    assert masked_command(["prove", *secret]) == ["prove", *hidden]
    sentence = "rolling restart of keystone with token.caching=true"
    assert masked_command(["fault", "--do", sentence]) == ["fault", "--do", sentence]
    assert masked("token.value=abc-123") == "token.value=***"
