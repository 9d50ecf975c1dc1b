"""A different secret for every place in which input can hold one."""

import base64
import hashlib
from dataclasses import dataclass, field


@dataclass
class Canaries:
    """Secrets by their places."""

    by_place: dict[str, str] = field(default_factory=dict)

    def new(self, place: str) -> str:
        """Return the secret of a place."""
        assert place not in self.by_place, place
        digest = hashlib.sha256(place.encode()).hexdigest()
        self.by_place[place] = f"Canary{len(self.by_place):03d}x{digest[:8]}"
        return self.by_place[place]

    def number(self, place: str) -> int:
        """Return the secret of a place as a number of eight digits."""
        assert place not in self.by_place, place
        digits = 10_000_000 + int(hashlib.sha256(place.encode()).hexdigest(), 16) % 90_000_000
        self.by_place[place] = str(digits)
        return digits


HEADERS = (
    *("Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "Set-Cookie", "X-Auth-Token"),
    *("X-Subject-Token", "X-Service-Token", "X-Key", "X-Session", "X-Api-Key", "Api-Key", "ApiKey"),
    *("X-Vault-Token", "X-Amz-Security-Token", "X-Amz-Signature", "X-Signature", "X-Hub-Signature"),
    *("X-Csrf-Token", "X-Secret", "X-Access", "X-Pass", "X-Pin", "X-Otp", "X-Whatever", "DPoP"),
    *("X-GitHub-Secret", "X-Trust-Id", "X-Forwarded-Access-Token", "X-Client-Assertion"),
)
SCHEMES = ("Bearer", "bearer", "Token", "Basic", "Digest", "ApiKey", "Negotiate", "DPoP", "Splunk")
NAMES = (
    *("password", "passwd", "pwd", "pass", "passphrase", "passcode", "secret", "client_secret"),
    *("token", "access_token", "refresh_token", "id_token", "api_key", "apikey", "apiKey", "key"),
    *("private_key", "signing-key", "access_key", "secret_key", "sessionKey", "session_id", "sid"),
    *("sig", "signature", "X-Amz-Signature", "X-Amz-Credential", "hmac", "jwt", "assertion"),
    *("totp", "otp", "pin", "mfa", "psk", "auth", "cookie", "credential", "adminPass", "session"),
)
COMMANDS = (
    *("curl -u ann:{} x", "curl --user ann:{} x", "curl --user=ann:{} x", "curl -uann:{} x"),
    *("curl --proxy-user ann:{} x", "curl -H 'X-Auth-Token: {}' x", "curl -H 'X-Key: {}' x"),
    *("curl -H 'Authorization: Bearer {}' x", "curl -H 'X-Other: Bearer {}' x"),
    *("curl -H 'Cookie: a={}' x", "curl -b a={} x", "curl --oauth2-bearer {} x", "curl -E c:{} x"),
    *("curl --oauth2-bearer={} x", "curl http://ann:{}@x/", "curl 'http://x/?sig={}'"),
    *("curl 'http://x/?key={}&a=1'", "curl -d password={} x", "curl -d 'a=1&pin={}' x"),
    *("curl --data-urlencode totp={} x", "curl --pass {} x", "curl --tlspassword {} x"),
    *("mysql -p{} x", "mysql --password={} x", "mysqldump -u root -p{} x", "mariadb -p{}"),
    *("env MYSQL_PWD={} mysql", "env PGPASSWORD={} psql", "psql postgresql://ann:{}@x/y"),
    *("mongosh -p {}", "redis-cli -a {} ping", "ldapsearch -x -w {} b", "ldapwhoami -w {}"),
    *("sshpass -p{} ssh x", "sshpass -p {} ssh x", "docker login -u ann -p {} x", "az login -p {}"),
    *("wget --password={} x", "wget --http-password={} x", "http -a ann:{} x", "ipmitool -P {} x"),
    *("openssl rsa -passin pass:{}", "smbclient -U ann%{} x", "snmpget -c {} x"),
    *("gpg --passphrase {}",),
    *("openstack --os-password {} token issue", "openstack --os-token {} user list"),
    *("env OS_PASSWORD={} openstack", "aws configure set aws_secret_access_key {}"),
    *("vault login token={}", "kubectl --token={} get x", "helm --password {} x", "x --api-key {}"),
    *("x --secret={}", "x --client-secret {}", "x --pin {}", "x --otp={}", "x --key {}"),
)  # fmt: skip
PRINTED = (
    *("password: {}", "password={}", '{{"token": "{}"}}', "Authorization: Bearer {}", "X-Key: {}"),
    *("Bearer {}", "https://ann:{}@host/", "http://host/?sig={}", "Set-Cookie: a={}", "pin={}"),
    *("export OS_PASSWORD='{}'", "api_key = {}", "totp: {}", "a -> token: {}", "PGPASSWORD={}"),
)  # fmt: skip


def basic(user: str, password: str) -> str:
    """Return user and password as HTTP sends them."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()
