"""What prepare.py and prepare_queens.py do alike; it runs on Python 3.6 too."""
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
MARK = "loadstone-"  # begins the audit id, or the id, of each row that is written here
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
    """Write rows in place of those of an earlier start."""
    with sql.session_for_write() as session:
        session.execute(table.delete().where(column.like(MARK + "%")))
        for first in range(0, len(rows), BATCH):
            session.execute(table.insert(), rows[first : first + BATCH])


def write_revocation_events(count):
    """Write what revoking `count` tokens would: rows with each token's audit id and the time.

    One by one through the API, 10,000 of them would take minutes: each is a login first. The time
    lies ahead, as if they were revoked while the tokens that are validated lived: a validation
    looks at no event that is older than its token.
    """
    later = revoke_model.RevokeEvent().revoked_at + AHEAD
    rows = [
        {"audit_id": MARK + secrets.token_hex(6), "issued_before": later, "revoked_at": later}
        for _ in range(count)
    ]
    table = revoke_sql.RevocationEvent.__table__
    replace_rows(table, table.c.audit_id, rows)
