"""Atomic actions of rally-openstack 4.1.0, without the prefix "keystone_v3."."""

ACTIONS = {
    "KeystoneBasic.create_user": "create_user",
    "KeystoneBasic.create_delete_user": "create_user delete_user",
    "KeystoneBasic.create_user_set_enabled_and_delete": "create_user update_user delete_user",
    "KeystoneBasic.create_tenant": "create_project",
    "KeystoneBasic.authenticate_user_and_validate_token": "fetch_token validate_token",
    "KeystoneBasic.create_tenant_with_users": "create_project create_users",
    "KeystoneBasic.create_and_list_users": "create_user list_users",
    "KeystoneBasic.create_and_list_tenants": "create_project list_projects",
    "KeystoneBasic.add_and_remove_user_role": "create_role add_role revoke_role",
    "KeystoneBasic.create_and_delete_role": "create_role delete_role",
    "KeystoneBasic.create_add_and_list_user_roles": "create_role add_role list_roles",
    "KeystoneBasic.get_entities": "create_project create_user create_role get_project get_user "
    "get_role list_services get_services",
    "KeystoneBasic.create_and_delete_service": "create_service delete_service",
    "KeystoneBasic.create_update_and_delete_tenant": "create_project update_project delete_project",
    "KeystoneBasic.create_user_update_password": "create_user update_user",
    "KeystoneBasic.create_and_list_services": "create_service list_services",
    "KeystoneBasic.create_and_list_ec2credentials": "create_ec2creds list_ec2creds",
    "KeystoneBasic.create_and_delete_ec2credential": "create_ec2creds delete_ec2creds",
    "KeystoneBasic.create_and_get_role": "create_role get_role",
    "KeystoneBasic.create_and_list_roles": "create_role list_roles",
    "KeystoneBasic.create_and_update_user": "create_user update_user",
    "Authenticate.keystone": "authenticate.keystone",
}
