"""KeystoneBasic: the calls of an iteration of each scenario (rally-openstack 4.1.0)."""

from collections.abc import Callable, Mapping

from loadstone.keystone.resources import ResourceKind
from loadstone.keystone.scenarios.draft import (
    PROJECT_ID,
    USER_ID,
    Arguments,
    Draft,
    grant,
    under,
)
from loadstone.plan.script import Captured, JsonCapture, text

Build = Callable[[Draft, Arguments], None]


def _create_user(draft: Draft, arguments: Arguments) -> None:
    draft.create_user(arguments)


def _create_delete_user(draft: Draft, arguments: Arguments) -> None:
    draft.delete(ResourceKind.USER, draft.create_user(arguments))


def _create_user_set_enabled_and_delete(draft: Draft, arguments: Arguments) -> None:
    user = draft.create_user(arguments)
    draft.update(ResourceKind.USER, user, {"enabled": not arguments["enabled"]})
    draft.delete(ResourceKind.USER, user)


def _create_tenant(draft: Draft, arguments: Arguments) -> None:
    draft.create_project(arguments)


def _create_tenant_with_users(draft: Draft, arguments: Arguments) -> None:
    project = draft.create_project(arguments)
    for number in range(1, int(str(arguments["users_per_tenant"])) + 1):
        draft.create_user({}, project, within="keystone_v3.create_users/", number=number)


def _create_and_list_users(draft: Draft, arguments: Arguments) -> None:
    draft.create_user(arguments)
    draft.get("list_users", "/users")


def _create_and_list_tenants(draft: Draft, arguments: Arguments) -> None:
    draft.create_project(arguments)
    draft.get("list_projects", "/projects")


def _add_and_remove_user_role(draft: Draft, _: Arguments) -> None:
    role = draft.create_role({})
    draft.call("keystone_v3.add_role", "PUT", grant(PROJECT_ID, USER_ID, role))
    draft.call("keystone_v3.revoke_role", "DELETE", grant(PROJECT_ID, USER_ID, role))


def _create_and_delete_role(draft: Draft, _: Arguments) -> None:
    draft.delete(ResourceKind.ROLE, draft.create_role({}))


def _create_add_and_list_user_roles(draft: Draft, _: Arguments) -> None:
    role = draft.create_role({})
    draft.call("keystone_v3.add_role", "PUT", grant(PROJECT_ID, USER_ID, role))
    draft.get("list_roles", "/projects", PROJECT_ID, text("users"), USER_ID, text("roles"))


def _get_entities(draft: Draft, arguments: Arguments) -> None:
    project = draft.create_project({})
    user = draft.create_user({}, project)
    role = draft.create_role({})
    draft.get("get_project", "/projects", project)
    draft.get("get_user", "/users", user)
    draft.get("get_role", "/roles", role)
    name = arguments["service_name"]
    if name is None:
        service = draft.create_service({})
    else:
        service = text(draft.context.finder.service_id(str(name)))
        draft.get("list_services", "/services")
    draft.get("get_services", "/services", service)  # Rally's own spelling


def _create_and_delete_service(draft: Draft, arguments: Arguments) -> None:
    draft.delete(ResourceKind.SERVICE, draft.create_service(arguments))


def _create_update_and_delete_tenant(draft: Draft, arguments: Arguments) -> None:
    project = draft.create_project(arguments)
    renamed = {"name": draft.thing(2), "description": draft.thing(3)}
    draft.update(ResourceKind.PROJECT, project, renamed)
    draft.delete(ResourceKind.PROJECT, project)


def _create_user_update_password(draft: Draft, _: Arguments) -> None:
    user = draft.create_user({})
    draft.update(ResourceKind.USER, user, {"password": draft.secret("updated_password")})


def _create_and_list_services(draft: Draft, arguments: Arguments) -> None:
    draft.create_service(arguments)
    draft.get("list_services", "/services")


def _create_ec2(draft: Draft) -> None:
    draft.as_user = True
    draft.leaves_with_users = ("EC2 credentials",)  # if its answer is lost
    draft.call(
        "keystone_v3.create_ec2creds",
        "POST",
        under("/users", USER_ID, text("credentials/OS-EC2")),
        {"tenant_id": PROJECT_ID},
        (JsonCapture("access", "/credential/access"),),
    )


def _create_and_list_ec2credentials(draft: Draft, _: Arguments) -> None:
    _create_ec2(draft)
    draft.get("list_ec2creds", "/users", USER_ID, text("credentials/OS-EC2"))


def _create_and_delete_ec2credential(draft: Draft, _: Arguments) -> None:
    _create_ec2(draft)
    path = under("/users", USER_ID, text("credentials/OS-EC2"), (Captured("access"),))
    draft.call("keystone_v3.delete_ec2creds", "DELETE", path)


def _create_and_get_role(draft: Draft, arguments: Arguments) -> None:
    draft.get("get_role", "/roles", draft.create_role(arguments))


def _create_and_list_roles(draft: Draft, arguments: Arguments) -> None:
    draft.create_role(_mapping(arguments, "create_role_kwargs"))
    query = _mapping(arguments, "list_role_kwargs")
    user, project, domain = (query.get(k) for k in ("user_id", "project_id", "domain_name"))
    # Without a user, keystoneclient lists all roles, whatever the other arguments are.
    if not user or not (project or domain):
        draft.get("list_roles", "/roles")
        return
    place = (
        under("/projects", text(str(project)))
        if project
        else under("/domains", text(draft.context.finder.domain_id(str(domain))))
    )
    draft.call(
        "keystone_v3.list_roles",
        "GET",
        (*place, *under("/users", text(str(user)), text("roles"))),
    )


def _create_and_update_user(draft: Draft, arguments: Arguments) -> None:
    user = draft.create_user(_mapping(arguments, "create_user_kwargs"))
    changes = _mapping(arguments, "update_user_kwargs")
    plain = {key: changes[key] for key in ("enabled", "email") if changes.get(key) is not None}
    password = changes.get("password")
    secret = {"password": draft.secret("updated_password", str(password))} if password else {}
    draft.update(ResourceKind.USER, user, {**plain, **secret})


def _mapping(arguments: Arguments, argument: str) -> Arguments:
    value = arguments.get(argument)
    return value if isinstance(value, Mapping) else {}


BUILDS: dict[str, Build] = {
    f"KeystoneBasic.{build.__name__.removeprefix('_')}": build
    for build in (
        _create_user,
        _create_delete_user,
        _create_user_set_enabled_and_delete,
        _create_tenant,
        _create_tenant_with_users,
        _create_and_list_users,
        _create_and_list_tenants,
        _add_and_remove_user_role,
        _create_and_delete_role,
        _create_add_and_list_user_roles,
        _get_entities,
        _create_and_delete_service,
        _create_update_and_delete_tenant,
        _create_user_update_password,
        _create_and_list_services,
        _create_and_list_ec2credentials,
        _create_and_delete_ec2credential,
        _create_and_get_role,
        _create_and_list_roles,
        _create_and_update_user,
    )
}
