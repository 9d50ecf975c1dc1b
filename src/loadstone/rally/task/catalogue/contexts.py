"""Contexts: what must exist before the load and is removed after it."""

from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, model_validator

from loadstone.keystone.contexts import model
from loadstone.rally.task.catalogue.foreign import CLIENTS, QUOTAS
from loadstone.rally.task.catalogue.form import ROOT_RULES, Count, Form, ListForm, Reference

CHOICE = "user_choice_method"


class UsersForm(Form):
    """Projects and users for the load."""

    tenants: Count = Field(1, description="Number of projects.")
    users_per_tenant: Count = Field(1, description="Number of users in each project.")
    user_password: str = Field("", description="Their password; by default a random one each.")
    resource_management_workers: Count = Field(20, description="Number of parallel creations.")
    project_domain: str = Field("", description="The projects' domain.")
    user_domain: str = Field("", description="The users' domain.")
    user_choice_method: Literal["random", "round_robin"] = Field(
        "random", description="Which user an iteration gets."
    )

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Users(
            tenants=self.tenants,
            users_per_tenant=self.users_per_tenant,
            password=self.user_password or None,
            workers=self.resource_management_workers,
            project_domain=self.project_domain or None,
            user_domain=self.user_domain or None,
            choice=self.user_choice_method,
            may_be_existing=self.model_fields_set <= {CHOICE},
        )


class RolesForm(ListForm):
    """Roles for every user."""

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Roles(tuple(self.root))


class ApiVersionForm(Form):
    """API version of one client, or one of service_type and service_name."""

    version: str | float = Field("", description="Such as 3 or 2.1.")
    service_type: str = Field("", description="Type in the catalog.")
    service_name: str = Field("", description="Name in the catalog.")

    @model_validator(mode="after")
    def _says_what(self) -> "ApiVersionForm":
        if not self.model_fields_set:
            raise ValueError("needs version, service_type or service_name")
        if {"service_type", "service_name"} <= self.model_fields_set:
            raise ValueError("takes service_type or service_name, not both")
        return self


class ApiVersionsForm(RootModel[dict[str, ApiVersionForm]]):
    """Mapping of client names to API versions."""

    model_config = ROOT_RULES
    root: Annotated[dict[str, ApiVersionForm], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_clients(self) -> "ApiVersionsForm":
        for client, form in self.root.items():
            if client not in CLIENTS:
                raise ValueError(f"knows no client {client}, only {', '.join(CLIENTS)}")
            if client != "keystone":
                continue
            if "version" not in form.model_fields_set or len(form.model_fields_set) > 1:
                raise ValueError("takes only a version for keystone")
            if form.version not in ("3", 3):
                raise ValueError("of keystone must be 3: Loadstone speaks no other")
        return self

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.ApiVersions()


class QuotasForm(RootModel[dict[str, dict[str, int]]]):
    """Mapping of services to resources to limits; -1 means unlimited."""

    model_config = ROOT_RULES
    root: dict[str, dict[str, Annotated[int, Field(ge=-1)]]]

    @model_validator(mode="after")
    def _names_resources(self) -> "QuotasForm":
        for service, limits in self.root.items():
            known = QUOTAS.get(service)
            if known is None:
                raise ValueError(f"knows no quotas of {service}, only of {', '.join(QUOTAS)}")
            unknown = sorted(set(limits) - set(known))
            if unknown:
                message = f"{service} has no quota of {', '.join(unknown)}"
                raise ValueError(f"{message}, only of {', '.join(known)}")
            if service == "designate" and min(limits.values(), default=1) < 1:
                raise ValueError("designate's limits must be at least 1")
        return self

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Quotas(self.root)


class NetworkForm(Form):
    """Networks in each project. No router is made: servers need none to boot."""

    start_cidr: str = Field("10.2.0.0/24", description="The first subnet; others follow it.")
    networks_per_tenant: Count = Field(1, description="Number in each project.")
    subnets_per_network: Count = Field(1, description="Number in each network.")
    network_create_args: dict[str, Any] = Field(
        default_factory=dict, description="Further attributes of each network."
    )
    dns_nameservers: list[str] = Field(default_factory=list, description="Of each subnet.")
    dualstack: Literal[False] = Field(False, description="Subnets are of IPv4 only.")
    router: dict[str, Any] = Field(default_factory=dict, description="Ignored: none is made.")

    @model_validator(mode="after")
    def _is_a_network(self) -> "NetworkForm":
        try:
            IPv4Network(self.start_cidr)
        except ValueError as wrong:
            raise ValueError(f"has a start_cidr that is not a network of IPv4: {wrong}") from None
        for name in ("name", "project_id", "tenant_id"):
            if name in self.network_create_args:
                raise ValueError(
                    f"network_create_args: {name} is chosen by Loadstone, which removes the "
                    "networks by it"
                )
        return self

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Network(
            start_cidr=self.start_cidr,
            networks_per_tenant=self.networks_per_tenant,
            subnets_per_network=self.subnets_per_network,
            dns_nameservers=tuple(self.dns_nameservers),
            attributes=self.network_create_args,
        )


class NicForm(Form):
    """A network by its id, as Nova names it."""

    net_id: str = Field(alias="net-id")


class ServersForm(Form):
    """Servers in each project, booted before the load."""

    image: Reference = Field(description="id, name or regex of the image.")
    flavor: Reference = Field(description="id, name or regex of the flavor.")
    servers_per_tenant: Count = Field(5, description="Number in each project.")
    auto_assign_nic: bool = Field(False, description="Whether to choose a network.")
    nics: Annotated[list[str | NicForm], Field(min_length=1)] | None = Field(
        None, description="Ids of networks."
    )

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.ExistingServers(
            self.image,
            self.flavor,
            self.servers_per_tenant,
            self.auto_assign_nic,
            tuple(one if isinstance(one, str) else one.net_id for one in self.nics or ()),
        )


class LoginForm(Form):
    """When iterations log in; Loadstone's own context."""

    every_iteration: bool = Field(True, description="As Rally; else a token is kept.")

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Login(self.every_iteration)


class CleanupForm(ListForm):
    """Services in which the users' remaining resources are removed."""

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Cleanup()


class AdminCleanupForm(ListForm):
    """Services in which the administrator removes what the workload created."""

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.Cleanup()


class DummyContextForm(Form):
    """Does nothing, or fails on request."""

    fail_setup: bool = Field(False, description="Fail when it is set up.")
    fail_cleanup: bool = Field(False, description="Fail when it is cleaned up.")

    def to_model(self) -> model.Context:
        """Return the context."""
        return model.DummyContext(self.fail_setup, self.fail_cleanup)


ContextForm = (
    UsersForm
    | RolesForm
    | ApiVersionsForm
    | QuotasForm
    | NetworkForm
    | ServersForm
    | LoginForm
    | CleanupForm
    | AdminCleanupForm
    | DummyContextForm
)

# In Rally's order of set-up; cleaned up in reverse.
CONTEXTS: dict[str, type[ContextForm]] = {
    "users": UsersForm,
    "api_versions": ApiVersionsForm,
    "quotas": QuotasForm,
    "roles": RolesForm,
    "login": LoginForm,
    "network": NetworkForm,
    "servers": ServersForm,
    "dummy_context": DummyContextForm,
    "admin_cleanup": AdminCleanupForm,
    "cleanup": CleanupForm,
}
NEED_USERS = ("quotas", "roles", "network", "servers")
