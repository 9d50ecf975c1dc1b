"""Other ways to log in: with another scope, as an OAuth2 client, by a signature, or in vain."""

import base64
from dataclasses import replace

from loadstone.keystone.scenarios.authenticate import (
    ISSUE_TOKEN,
    PROJECT,
    USER,
    ask_for_token,
    by_password,
    by_token,
)
from loadstone.keystone.scenarios.body import Tree
from loadstone.keystone.scenarios.draft import Draft
from loadstone.keystone.scenarios.model import (
    ACCESS_TOKEN,
    EC2_REQUEST,
    GROUPS,
    JSON_HEADERS,
    S3_STRING_TO_SIGN,
    SUBJECT_TOKEN,
    Need,
    Scenario,
)
from loadstone.plan.script import Captured, Column, HeaderCapture, OneTimeCode, Step, text

# No password that Loadstone makes has a space.
_WRONG_PASSWORD = "not the password"  # noqa: S105

ISSUE_FOR_DOMAIN = Scenario(
    name="Keystone.issue_domain_token",
    title="token issue for a domain",
    request="POST /v3/auth/tokens (password, domain scope)",
    steps=(
        ask_for_token(
            "keystone_v3.issue_domain_token",
            by_password(),
            {"domain": {"id": (Column("domain_id"),)}},
        ),
    ),
    needs=(Need.DOMAIN_ROLE,),
)
ISSUE_FOR_SYSTEM = Scenario(
    name="Keystone.issue_system_token",
    title="token issue for the system",
    request="POST /v3/auth/tokens (password, system scope)",
    steps=(
        ask_for_token("keystone_v3.issue_system_token", by_password(), {"system": {"all": True}}),
    ),
    needs=(Need.SYSTEM_ROLE,),
)

# The roles come by way of groups, and imply others: Keystone follows both at each login.
ISSUE_BY_GROUPS = replace(
    ISSUE_TOKEN,
    name="Keystone.issue_token_by_groups",
    title=f"token issue for users in {GROUPS} groups",
    request=f"POST /v3/auth/tokens (password, project scope; users in {GROUPS} groups with roles)",
    needs=(Need.GROUPS,),
)

# As keystoneauth's v3oidcaccesstoken does: the web server asks the provider about the access token,
# Keystone maps the user to groups and gives a token without a scope, and that is exchanged.
FEDERATED = Scenario(
    name="Keystone.log_in_federated",
    title="login with an access token of an identity provider",
    request="POST /v3/OS-FEDERATION/.../auth (access token), POST /v3/auth/tokens (project scope)",
    steps=(
        Step(
            action="keystone_v3.federated_auth",
            method="POST",
            path=(Column("federated_auth"),),
            headers=(
                ("Accept", text("application/json")),
                ("Authorization", (*text("Bearer "), ACCESS_TOKEN)),
            ),
            expect_status=(201,),
            captures=(HeaderCapture("unscoped", "X-Subject-Token"),),
        ),
        ask_for_token(
            "keystone_v3.rescope_token",
            by_token(Captured("unscoped")),
            {"project": {"id": (Column("federated_project_id"),)}},
        ),
    ),
    needs=(Need.FEDERATION,),
)

# An attack, or a service whose password has changed. It costs a password hash like a login that
# succeeds. Users of the cloud would be locked out where [security_compliance] says so.
WRONG_PASSWORD = Scenario(
    name="Keystone.refuse_wrong_password",
    title="login with a wrong password",
    request="POST /v3/auth/tokens (wrong password; 401 is expected)",
    steps=(
        ask_for_token(
            "keystone_v3.refuse_wrong_password", by_password(_WRONG_PASSWORD), status=401
        ),
    ),
    leaves_with_users=("failed logins",),
)

# To the default domain, in which the user has no role.
RESCOPE_REFUSED = Scenario(
    name="Keystone.refuse_rescope",
    title="refused token rescope",
    request="POST /v3/auth/tokens (token, scope of a domain without a role; 401 is expected)",
    steps=(
        ask_for_token(
            "keystone_v3.refuse_rescope",
            by_token(SUBJECT_TOKEN),
            {"domain": {"id": "default"}},
            status=401,
        ),
    ),
    leaves_with_users=("refused logins",),
)

# RFC 6749, 4.4, with HTTP Basic authentication; Keystone's clients are application credentials.
OAUTH2 = Scenario(
    name="Keystone.issue_oauth2_token",
    title="OAuth2 token issue",
    request="POST /v3/OS-OAUTH2/token (client credentials)",
    steps=(
        Step(
            action="keystone_v3.issue_oauth2_token",
            method="POST",
            path=text("/OS-OAUTH2/token"),
            headers=(
                ("Accept", text("application/json")),
                ("Content-Type", text("application/x-www-form-urlencoded")),
                ("Authorization", (*text("Basic "), Column("oauth2_client"))),
            ),
            body=text("grant_type=client_credentials"),
            expect_status=(200,),
        ),
    ),
    needs=(Need.APPLICATION_CREDENTIAL,),
)


# RFC 8705: the client is a user whom its certificate names, and the token is bound to the
# certificate. All connections of a load show one certificate, so it is that of the identity that
# chose the target.
OAUTH2_MTLS = Scenario(
    name="Keystone.issue_oauth2_mtls_token",
    title="OAuth2 token issue with a client's certificate",
    request="POST /v3/OS-OAUTH2/token (client credentials, over TLS with a client's certificate)",
    steps=(
        Step(
            action="keystone_v3.issue_oauth2_mtls_token",
            method="POST",
            path=text("/OS-OAUTH2/token"),
            headers=(
                ("Accept", text("application/json")),
                ("Content-Type", text("application/x-www-form-urlencoded")),
            ),
            body=(*text("grant_type=client_credentials&client_id="), Column("own_user_id")),
            expect_status=(200,),
        ),
    ),
    needs=(Need.CLIENT_CERTIFICATE,),
)


# Keystone's guide, "Multi-factor authentication": the password alone gives a receipt, with which
# the code is sent. Keystone accepts a code more than once.
_RECEIPT = "Openstack-Auth-Receipt"
_BY_CODE: Tree = {
    "methods": ["totp"],
    "totp": {"user": {**USER, "passcode": (OneTimeCode("totp_secret"),)}},
}
LOGIN_WITH_TOTP = Scenario(
    name="Keystone.log_in_with_totp",
    title="login with a second factor",
    request="POST /v3/auth/tokens twice (password, then one-time code with the receipt)",
    steps=(
        replace(
            ask_for_token("keystone_v3.get_receipt", by_password(), PROJECT, status=401),
            captures=(HeaderCapture("receipt", _RECEIPT),),
        ),
        replace(
            ask_for_token("keystone_v3.issue_token", _BY_CODE, PROJECT),
            headers=(*JSON_HEADERS, (_RECEIPT, (Captured("receipt"),))),
        ),
    ),
    needs=(Need.SECOND_FACTOR,),
)


def _signed(kind: str, path: str, credentials: Tree) -> Scenario:
    draft = Draft(f"Keystone.check_{kind}_signature")
    body: Tree = {"credentials": credentials}
    draft.call(f"keystone_v3.check_{kind}_signature", "POST", text(path), body, status=200)
    return replace(
        draft.scenario(f"check of a signature ({kind.upper()})"),
        request=f"POST /v3{path} (as a service that got a signed request)",
        needs=(Need.EC2_CREDENTIAL,),
    )


_ACCESS_KEY = (Column("ec2_access"),)
EC2 = _signed(
    "ec2",
    "/ec2tokens",
    {
        "verb": EC2_REQUEST["verb"],
        "host": EC2_REQUEST["host"],
        "path": EC2_REQUEST["path"],
        "params": {**EC2_REQUEST["params"], "AWSAccessKeyId": _ACCESS_KEY},
        "access": _ACCESS_KEY,
        "signature": (Column("ec2_signature"),),
    },
)
S3 = _signed(
    "s3",
    "/s3tokens",
    {
        "access": _ACCESS_KEY,
        "token": base64.urlsafe_b64encode(S3_STRING_TO_SIGN).decode(),
        "signature": (Column("s3_signature"),),
    },
)

LOGINS = {
    "federated-login": FEDERATED,
    "ec2": EC2,
    "issue-domain": ISSUE_FOR_DOMAIN,
    "issue-groups": ISSUE_BY_GROUPS,
    "issue-system": ISSUE_FOR_SYSTEM,
    "login-totp": LOGIN_WITH_TOTP,
    "oauth2": OAUTH2,
    "oauth2-mtls": OAUTH2_MTLS,
    "rescope-refused": RESCOPE_REFUSED,
    "s3": S3,
    "wrong-password": WRONG_PASSWORD,
}
