"""Issuing and validating tokens."""

from loadstone.keystone.scenarios.model import (
    ADMIN_TOKEN,
    JSON_HEADERS,
    SUBJECT_TOKEN,
    Scenario,
    filled,
)
from loadstone.plan.script import Column, Step, text

# By name, as people and services log in: Keystone then looks up user, project and domains.
PASSWORD_BODY = filled(
    '{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"<user>",'
    '"domain":{"name":"<domain>"},"password":"<password>"}}},'
    '"scope":{"project":{"name":"<project>","domain":{"name":"<project_domain>"}}}}}',
    user=Column("user_name"),
    domain=Column("domain_name"),
    password=Column("password"),
    project=Column("project_name"),
    project_domain=Column("project_domain_name"),
)

ISSUE_TOKEN = Scenario(
    name="Authenticate.keystone",
    title="token issue",
    request="POST /v3/auth/tokens (password, project scope)",
    steps=(
        Step(
            action="authenticate.keystone",
            method="POST",
            path=text("/auth/tokens"),
            headers=JSON_HEADERS,
            body=PASSWORD_BODY,
            expect_status=(201,),
        ),
    ),
)

# Rally validates only after an issue (KeystoneBasic.authenticate_user_and_validate_token); this
# action has the same name.
VALIDATE_TOKEN = Scenario(
    name="Keystone.validate_token",
    title="token validation",
    request="GET /v3/auth/tokens (one service validates the users' tokens)",
    steps=(
        Step(
            action="keystone_v3.validate_token",
            method="GET",
            path=text("/auth/tokens"),
            headers=(
                ("Accept", text("application/json")),
                ("X-Auth-Token", (ADMIN_TOKEN,)),
                ("X-Subject-Token", (SUBJECT_TOKEN,)),
            ),
            expect_status=(200,),
        ),
    ),
)
