"""Makes users' further credentials and roles before the load: trusts, EC2 credentials and the like.

All of it belongs to the users, and Keystone removes it with them.
"""

import base64
import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from loadstone.cloud import Access
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import User
from loadstone.keystone.scenarios.model import EC2_REQUEST, S3_STRING_TO_SIGN, Need
from loadstone.system.concurrently import each

_NAME = "loadstone"
_ROLE = "member"
_WORKERS = 8
# What a service that lists and reads servers would be allowed.
_ACCESS_RULES = ({"service": "compute", "method": "GET", "path": "/v2.1/servers/*"},)


def with_credentials(
    access: Access, users: Sequence[User], needs: Iterable[Need]
) -> tuple[User, ...]:
    """Return the users, each with the credentials or roles that a scenario needs."""
    identity = Identity(access)
    wanted = [_MAKERS[need] for need in dict.fromkeys(needs) if need in _MAKERS]

    def with_all(user: User) -> User:
        made = dict(user.credentials)
        for make in wanted:
            made |= make(identity, user)
        return replace(user, credentials=made)

    return tuple(each(with_all, users, _WORKERS)) if wanted else tuple(users)


def _application_credential(identity: Identity, user: User) -> Mapping[str, str]:
    credential_id, secret = identity.create_application_credential(
        user, identity.log_in(user), _unique_name()
    )
    return {
        "application_credential_id": credential_id,
        "application_credential_secret": secret,
        # Basic authentication of an OAuth2 client (RFC 6749, 2.3.1).
        "oauth2_client": base64.b64encode(f"{credential_id}:{secret}".encode()).decode(),
    }


def _restricted_credential(identity: Identity, user: User) -> Mapping[str, str]:
    credential_id, secret = identity.create_application_credential(
        user, identity.log_in(user), _unique_name(), _ACCESS_RULES
    )
    return {"access_rules_credential_id": credential_id, "access_rules_credential_secret": secret}


def _trust(identity: Identity, user: User) -> Mapping[str, str]:
    role_id = identity.role_id(_ROLE)
    return {"trust_id": identity.create_trust(user, identity.log_in(user), role_id)}


def _ec2(identity: Identity, user: User) -> Mapping[str, str]:
    key, secret = identity.create_ec2_credential(user, identity.log_in(user))
    return {
        "ec2_access": key,
        "ec2_signature": ec2_signature(key, secret),
        "s3_signature": s3_signature(secret),
    }


def _domain_role(identity: Identity, user: User) -> Mapping[str, str]:
    place = f"/domains/{quote(user.domain_id, safe='')}"
    identity.grant_on(place, user.id, identity.role_id(_ROLE))
    return {}


def _system_role(identity: Identity, user: User) -> Mapping[str, str]:
    identity.grant_on("/system", user.id, identity.role_id(_ROLE))
    return {}


def _second_factor(identity: Identity, user: User) -> Mapping[str, str]:
    secret = base64.b32encode(secrets.token_bytes(20)).decode()  # RFC 4226: 160 bits
    identity.require_second_factor(user, secret)
    return {"totp_secret": secret}


_MAKERS: dict[Need, Callable[[Identity, User], Mapping[str, str]]] = {
    Need.APPLICATION_CREDENTIAL: _application_credential,
    Need.ACCESS_RULES: _restricted_credential,
    Need.TRUST: _trust,
    Need.EC2_CREDENTIAL: _ec2,
    Need.DOMAIN_ROLE: _domain_role,
    Need.SYSTEM_ROLE: _system_role,
    Need.SECOND_FACTOR: _second_factor,
}


def _unique_name() -> str:
    # A run may ask for a user's credentials several times.
    return f"{_NAME}-{secrets.token_hex(4)}"


def ec2_signature(access_key: str, secret: str) -> str:
    """Sign EC2_REQUEST by AWS' signature version 2, as base64 of HMAC-SHA256."""
    parameters = {**EC2_REQUEST["params"], "AWSAccessKeyId": access_key}
    query = "&".join(
        f"{quote(key, safe='')}={quote(value, safe='-_~')}"
        for key, value in sorted(parameters.items())
    )
    signed = "\n".join((EC2_REQUEST["verb"], EC2_REQUEST["host"], EC2_REQUEST["path"], query))
    return _hmac(secret, signed.encode(), "sha256")


def s3_signature(secret: str) -> str:
    """Sign S3_STRING_TO_SIGN by AWS' signature version 1, as base64 of HMAC-SHA1."""
    return _hmac(secret, S3_STRING_TO_SIGN, "sha1")


def _hmac(secret: str, text: bytes, digest: str) -> str:
    return base64.b64encode(hmac.digest(secret.encode(), text, digest)).decode()
