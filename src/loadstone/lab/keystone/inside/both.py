"""Code shared by prepare.py and prepare_queens.py; also runs on Python 3.6."""
# mypy: ignore-errors
# Keystone is installed in the lab's environment only.

import datetime
import secrets

import keystone.conf
from keystone.common import sql
from keystone.models import revoke_model
from keystone.revoke.backends import sql as revoke_sql

CONF = keystone.conf.CONF
AHEAD = datetime.timedelta(days=1)
MARK = "loadstone-"  # prefix of the audit id or id of each row that is written here
BATCH = 10000


def configure(options):
    """Read the configuration; log to standard error, as keystone-manage does."""
    keystone.conf.configure()
    sql.initialize()
    keystone.conf.set_default_for_default_log_levels()
    CONF(args=options, project="keystone")
    CONF.set_override("log_file", None)
    keystone.conf.setup_logging()


def replace_rows(table, column, rows):
    """Write rows and delete those of an earlier start."""
    with sql.session_for_write() as session:
        session.execute(table.delete().where(column.like(MARK + "%")))
        for first in range(0, len(rows), BATCH):
            session.execute(table.insert(), rows[first : first + BATCH])


def write_revocation_events(count):
    """Write the events that revoking `count` tokens would leave: audit id and time of each token.

    Through the API, 10,000 of them would take minutes, because each needs a login first. Their time
    is in the future, as if they were revoked while the validated tokens lived: a validation ignores
    events that are older than its token.
    """
    later = revoke_model.RevokeEvent().revoked_at + AHEAD
    rows = [
        {"audit_id": MARK + secrets.token_hex(6), "issued_before": later, "revoked_at": later}
        for _ in range(count)
    ]
    table = revoke_sql.RevocationEvent.__table__
    replace_rows(table, table.c.audit_id, rows)
