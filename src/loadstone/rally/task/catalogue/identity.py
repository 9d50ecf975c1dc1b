"""Identity scenarios: names, arguments and defaults of rally-openstack 4.1.0."""

from loadstone.rally.task.catalogue.scenario import ArgType, Argument, CatalogueEntry

ADMIN, USER = "admin_cleanup", "cleanup"

IGNORED_LENGTH = Argument("name_length", ArgType.WHOLE, "Ignored, as in Rally.", 10)
USERNAME = Argument(
    "username", ArgType.CHOSEN_NAME, "Must be left out: each user has a random name."
)
PASSWORD = Argument("password", ArgType.TEXT, "Password; without it the user has none.")
PROJECT = Argument("project_id", ArgType.ID, "Default project, in which the role is given.")
DOMAIN = Argument("domain_name", ArgType.TEXT, "Name or id of the domain.", "Default")
ENABLED = Argument("enabled", ArgType.FLAG, "Whether the user may log in.", True)
ROLE = Argument("default_role", ArgType.TEXT, "Role in the project.", "member")
CREATE_USER = (USERNAME, PASSWORD, PROJECT, DOMAIN, ENABLED, ROLE)
UPDATE_USER = (
    Argument("enabled", ArgType.FLAG, "Whether the user may log in."),
    Argument("name", ArgType.CHOSEN_NAME, "Must be left out: it would be taken."),
    Argument("email", ArgType.TEXT, "New mail address."),
    Argument("password", ArgType.TEXT, "New password."),
)
CREATE_PROJECT = (
    Argument("project_name", ArgType.CHOSEN_NAME, "Must be left out: each has a random name."),
    DOMAIN,
)
CREATE_ROLE = (
    Argument("name", ArgType.CHOSEN_NAME, "Must be left out: each has a random name."),
    Argument("domain_name", ArgType.TEXT, "Name or id of the domain; else a global role."),
)
LIST_ROLES = (
    Argument("user_id", ArgType.ID, "Roles of this user."),
    Argument("project_id", ArgType.ID, "Roles in this project."),
    Argument("domain_name", ArgType.TEXT, "Roles in this domain."),
)
CREATE_SERVICE = (
    Argument("name", ArgType.TEXT, "Ignored, as in Rally."),
    Argument("service_type", ArgType.TEXT, "Type in the catalog; else rally_test_type."),
    Argument("description", ArgType.TEXT, "Description; else a random one."),
)


def _keystone(
    name: str, about: str, arguments: tuple[Argument, ...] = (), cleanup: str = ADMIN
) -> CatalogueEntry:
    return CatalogueEntry(f"KeystoneBasic.{name}", about, arguments, cleanup=cleanup)


KEYSTONE = (
    _keystone("create_user", "Create a user.", (IGNORED_LENGTH, *CREATE_USER)),
    _keystone("create_delete_user", "Create a user and delete it.", (IGNORED_LENGTH, *CREATE_USER)),
    _keystone(
        "create_user_set_enabled_and_delete",
        "Create a user, turn its enabled flag and delete it.",
        (ENABLED, USERNAME, PASSWORD, PROJECT, DOMAIN, ROLE),
    ),
    _keystone("create_tenant", "Create a project.", (IGNORED_LENGTH, *CREATE_PROJECT)),
    _keystone("authenticate_user_and_validate_token", "Issue a token and validate it."),
    _keystone(
        "create_tenant_with_users",
        "Create a project with users in it.",
        (
            Argument(
                "users_per_tenant", ArgType.WHOLE, "Number of users.", is_required=True, least=1
            ),
            IGNORED_LENGTH,
            *CREATE_PROJECT,
        ),
    ),
    _keystone(
        "create_and_list_users",
        "Create a user and list all users.",
        # Rally ignores "name", which older task files set.
        (IGNORED_LENGTH, Argument("name", ArgType.ANY, "Ignored, as in Rally."), *CREATE_USER),
    ),
    _keystone(
        "create_and_list_tenants",
        "Create a project and list all projects.",
        (IGNORED_LENGTH, *CREATE_PROJECT),
    ),
    _keystone("add_and_remove_user_role", "Create a role, give it to a user and take it away."),
    _keystone("create_and_delete_role", "Create a role and delete it."),
    _keystone(
        "create_add_and_list_user_roles",
        "Create a role, give it to a user and list the user's roles.",
    ),
    _keystone(
        "get_entities",
        "Create a project, a user and a role; get each, and a service, by id.",
        (
            Argument(
                "service_name",
                ArgType.TEXT,
                "Service to get; null: create one and get that.",
                "keystone",
                takes_null=True,
            ),
        ),
    ),
    _keystone("create_and_delete_service", "Create a service and delete it.", CREATE_SERVICE),
    _keystone(
        "create_update_and_delete_tenant",
        "Create a project, rename it and delete it.",
        (IGNORED_LENGTH, *CREATE_PROJECT),
    ),
    _keystone(
        "create_user_update_password",
        "Create a user and change its password.",
        (IGNORED_LENGTH, Argument("password_length", ArgType.WHOLE, "Ignored, as in Rally.")),
    ),
    _keystone(
        "create_and_list_services", "Create a service and list all services.", CREATE_SERVICE
    ),
    _keystone(
        "create_and_list_ec2credentials",
        "Create EC2 credentials of a user and list them.",
        cleanup=USER,
    ),
    _keystone(
        "create_and_delete_ec2credential",
        "Create EC2 credentials of a user and delete them.",
        cleanup=USER,
    ),
    _keystone("create_and_get_role", "Create a role and get it.", CREATE_ROLE),
    _keystone(
        "create_and_list_roles",
        "Create a role and list all roles.",
        (
            Argument("create_role_kwargs", ArgType.MAPPING, "For the creation.", keys=CREATE_ROLE),
            Argument("list_role_kwargs", ArgType.MAPPING, "For the list.", keys=LIST_ROLES),
        ),
    ),
    _keystone(
        "create_and_update_user",
        "Create a user and update it.",
        (
            Argument("create_user_kwargs", ArgType.MAPPING, "For the creation.", keys=CREATE_USER),
            Argument("update_user_kwargs", ArgType.MAPPING, "For the update.", keys=UPDATE_USER),
        ),
    ),
)

# Rally's service name -> the type in the catalog.
VALIDATED = {
    "nova": "compute",
    "glance": "image",
    "cinder": "block-storage",
    "neutron": "network",
    "heat": "orchestration",
    "octavia": "load-balancer",
    "ceilometer": "metering",
    "monasca": "monitoring",  # in rally-openstack 3.0.0, but not in 4.1.0
}
REPETITIONS = Argument(
    "repetitions", ArgType.WHOLE, "Number of calls in each iteration.", is_required=True, least=1
)

AUTHENTICATE = (
    CatalogueEntry("Authenticate.keystone", "Issue one token."),
    *(
        CatalogueEntry(
            f"Authenticate.validate_{name}",
            f"Issue a token and use it on {name}, `repetitions` times.",
            (REPETITIONS,),
            service=service,
        )
        for name, service in VALIDATED.items()
    ),
)
