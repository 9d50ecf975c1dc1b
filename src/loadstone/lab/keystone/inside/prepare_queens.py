"""Variant of prepare.py for Keystone 13 (Queens) on Python 3.6, where modules have other names.

Reads the same JSON from standard input, without `jws` and `directory`: the settings refuse them for
this release.
"""
# mypy: ignore-errors
# Keystone is installed in the lab's environment only.

import contextlib
import datetime
import json
import secrets
import sys
import uuid

from both import AHEAD, CONF, MARK, configure, replace_rows, write_revocation_events
from keystone import exception
from keystone.cmd import cli
from keystone.common import token_utils
from keystone.common.sql import upgrades
from keystone.credential.providers import fernet as credential_fernet
from keystone.token.persistence.backends import sql as token_sql

PER_USER = 100  # expired tokens


def make_keys():
    """Run fernet_setup and credential_setup; existing keys are kept."""
    places = (
        (CONF.fernet_tokens.key_repository, CONF.fernet_tokens.max_active_keys, "fernet_tokens"),
        (CONF.credential.key_repository, credential_fernet.MAX_ACTIVE_KEYS, "credential"),
    )
    for folder, most, section in places:
        repository = token_utils.TokenUtils(folder, most, section)
        repository.create_key_directory(None, None)
        repository.initialize_key_repository(None, None)


class QueensBootstrap(cli.BootStrap):
    """Keystone's bootstrap with the password as an argument instead of a variable or option."""

    def __init__(self, password, url, region):
        """Set the values that it would read from the command line."""
        super().__init__()
        self.password = password
        self.username = self.project_name = self.role_name = "admin"
        self.service_name = "keystone"
        self.admin_url = self.internal_url = self.public_url = url
        self.region_id = region

    def _get_config(self):
        pass


def bootstrap_admin(password, url, region):
    """Run bootstrap; an existing administrator gets the password as if it were the first.

    A password that is changed through the API leaves a revocation event (see prepare.py).
    """
    work = QueensBootstrap(password, url, region)
    identity = work.identity_manager
    try:
        admin = identity.get_user_by_name("admin", CONF.identity.default_domain_id)
    except exception.UserNotFound:
        pass
    else:
        identity.driver.update_user(admin["id"], {"password": password})
    work.do_bootstrap()
    # Later releases create this role, which the load uses; role names are unique.
    role_id = uuid.uuid4().hex
    with contextlib.suppress(exception.Conflict):
        work.role_manager.create_role(role_id, {"id": role_id, "name": "member"})


def write_expired_tokens(count):
    """Write the rows that `count` expired tokens leave if nothing flushes them.

    They expired a day ago and were never revoked. Besides the indexed columns, a row has the length
    of an administrator's token.
    """
    past = datetime.datetime.utcnow().replace(microsecond=0) - AHEAD
    kept = {"token_data": {"token": {"filler": "x" * 1400}}, "token_version": "v3.0"}
    rows = [
        {
            "id": MARK + secrets.token_hex(16),
            "expires": past - datetime.timedelta(seconds=i),
            "extra": kept,
            "valid": True,
            "user_id": "%032x" % (i // PER_USER),
        }
        for i in range(count)
    ]
    table = token_sql.TokenModel.__table__
    replace_rows(table, table.c.id, rows)


def main():
    """Prepare the deployment as standard input says."""
    order = json.load(sys.stdin)
    configure(order["options"])
    if order["sync"]:
        upgrades.offline_sync_database_to_version(None)
    if order["bootstrap"]:
        make_keys()
        bootstrap_admin(**order["bootstrap"])
        write_revocation_events(order["revocation_events"])
        write_expired_tokens(order["expired_tokens"])


if __name__ == "__main__":
    main()
