"""A scenario: what one iteration sends, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, Self, TypedDict

from loadstone.keystone.resources import CreatedByIterations, iteration_prefix
from loadstone.plan.model import Origin
from loadstone.plan.script import Column, Step, Steps, Text, WeightedScript, columns_of


class EC2Request(TypedDict):
    """The parts of a request that AWS' signature version 2 signs."""

    verb: str
    host: str
    path: str
    params: dict[str, str]


JSON_HEADERS = (
    ("Accept", (Text("application/json"),)),
    ("Content-Type", (Text("application/json"),)),
)
SUBJECT_TOKEN, ADMIN_TOKEN = Column("token"), Column("admin_token")
# Tokens of users by what they were issued for: a project, unless the name says otherwise.
APPLICATION_CREDENTIAL_TOKEN = Column("application_credential_token")
ACCESS_RULES_TOKEN = Column("access_rules_token")
TRUST_TOKEN = Column("trust_token")
DOMAIN_TOKEN = Column("domain_token")
SYSTEM_TOKEN = Column("system_token")
FEDERATED_TOKEN = Column("federated_token")
ACCESS_TOKEN = Column("access_token")  # of an OpenID provider, which Keystone takes for a token
TOKEN_COLUMNS = {
    token.column
    for token in (
        *(SUBJECT_TOKEN, APPLICATION_CREDENTIAL_TOKEN, ACCESS_RULES_TOKEN),
        *(TRUST_TOKEN, DOMAIN_TOKEN, SYSTEM_TOKEN, FEDERATED_TOKEN, ACCESS_TOKEN),
    )
}
# What a client has signed for a service: AWS' signature version 2 of a request (without a time, so
# that it does not expire), and the string that S3 signs.
EC2_REQUEST: EC2Request = {
    "verb": "GET",
    "host": "ec2.example",
    "path": "/",
    "params": {
        "Action": "DescribeInstances",
        "SignatureMethod": "HmacSHA256",
        "SignatureVersion": "2",
        "Version": "2016-11-15",
    },
}
S3_STRING_TO_SIGN = b"GET\n\n\n\nx-amz-date:Tue, 27 Mar 2007 19:36:42 +0000\n/bucket/key"
GROUPS = 100  # that each user is in (Need.GROUPS)
TREE_PROJECTS = 1000  # Need.PROJECT_TREE
ROOT = Column("root")  # the complete path of a request above the version: "/"
MADE = Column("made")  # before the iteration's number in the names of created resources


class Need(StrEnum):
    """A credential or role that each user gets before the load, beside its password and project."""

    APPLICATION_CREDENTIAL = "application credentials"
    ACCESS_RULES = "application credentials with access rules"
    TRUST = "trusts"
    EC2_CREDENTIAL = "EC2 credentials"
    DOMAIN_ROLE = "roles in their domain"
    SYSTEM_ROLE = "roles on the system"
    SECOND_FACTOR = "second factors (TOTP)"
    GROUPS = "groups with roles"
    PROJECT_TREE = "a tree of projects"
    FEDERATION = "logins at an identity provider"
    CLIENT_CERTIFICATE = "a client's certificate"

    @property
    def changes_users(self) -> bool:
        """Whether users who have it cost more, or log in differently, in other scenarios too."""
        return self in (Need.SECOND_FACTOR, Need.GROUPS)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps with paths relative to the version (/auth/tokens), with holes for known columns."""

    name: str  # Rally's name if Rally has the scenario
    title: str
    request: str  # description of what an iteration sends
    steps: Steps
    # Columns of its own, such as passwords that it sets.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    # What its iterations create, with the iteration's number in the name.
    makes: tuple[CreatedByIterations, ...] = ()
    needs: tuple[Need, ...] = ()
    # Describes what else is removed only with the users; shown to those who bring their own users.
    leaves_with_users: tuple[str, ...] = ()
    revokes_tokens: bool = False  # all tokens of the user that an iteration is about
    origin: Origin | None = None  # None: the cloud's identity API
    mix: tuple[WeightedScript, ...] = ()  # which steps an iteration executes; empty: all
    connection: Literal["kept", "iteration", "request"] = "kept"

    @property
    def columns(self) -> frozenset[str]:
        """Columns that the steps use, except the scenario's own."""
        return columns_of(self.steps) - {MADE.column, ROOT.column, *self.values}

    def of_run(self, run_id: str) -> Self:
        """Return a copy for one phase of load, with unique names for what it creates."""
        return replace(self, values={**self.values, MADE.column: (iteration_prefix(run_id),)})

    @property
    def uses_tokens(self) -> bool:
        """Whether an iteration uses a token of its user after it was issued."""
        return bool(self.token_columns) or (
            len(self.steps) > 1 and not self.is_sent_by_administrator
        )

    @property
    def is_sent_by_administrator(self) -> bool:
        """Whether each request carries the administrator's token, whichever user it is about."""
        return all(self._by_administrator)

    @property
    def has_several_kinds_of_senders(self) -> bool:
        """Whether the administrator sends some requests, and users send the others."""
        return any(self._by_administrator) and not self.is_sent_by_administrator

    @property
    def _by_administrator(self) -> tuple[bool, ...]:
        """For each request, whether it carries the administrator's token."""
        steps = [step for step in self.steps if isinstance(step, Step)]
        return tuple(("X-Auth-Token", (ADMIN_TOKEN,)) in step.headers for step in steps)

    @property
    def goes_with_users(self) -> str:
        """What is removed only with the users, in words; empty if there is nothing."""
        elsewhere = (Need.FEDERATION, Need.CLIENT_CERTIFICATE)
        left = (need for need in self.needs if need not in elsewhere)
        return " and ".join(dict.fromkeys((*left, *self.leaves_with_users)))

    @property
    def token_columns(self) -> tuple[str, ...]:
        """Columns of users' tokens, which must be issued before the load."""
        return tuple(sorted(name for name in self.columns if name in TOKEN_COLUMNS))
