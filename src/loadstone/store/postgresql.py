"""PostgreSQL: its engine and its error messages."""

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from loadstone.errors import EnvironmentUnusable
from loadstone.store.location import VARIABLE, without_secrets
from loadstone.system.installation import pip_install

CONNECT_TIMEOUT_S = 10
KEEPALIVE_S = 15
MIGRATION_LOCK = 0x6C6F6164  # "load", as the key of the advisory lock
# Part of the message of the server or libpq -> remedy.
_REMEDIES = {
    "no password supplied": f"put it into ~/.pgpass, PGPASSWORD or {VARIABLE}",
    "password authentication failed": f"it comes from ~/.pgpass, PGPASSWORD or {VARIABLE}",
    "permission denied": "its user needs the right to create tables in the schema and to write",
    "read-only transaction": "it is a replica or set read-only; name the primary server",
    "lock timeout": "another process holds it; try again when that has ended",
    "No space left": "free some space on the server",
}


def engine(url: URL, patience_s: float) -> Engine:
    """Return an engine that tests connections before use; locks time out after `patience_s`."""
    defaults = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives_idle": KEEPALIVE_S,
        "tcp_user_timeout": KEEPALIVE_S * 1000,
        "application_name": "loadstone",
    }
    arguments = {name: value for name, value in defaults.items() if name not in url.query}
    try:
        created = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            # Prepared statements fail behind a pooler that shares its connections.
            connect_args={**arguments, "prepare_threshold": None},
        )
    except ImportError as problem:
        raise EnvironmentUnusable(
            f"{without_secrets(url)} needs psycopg; install: {pip_install('psycopg[binary]')}"
        ) from problem

    def on_begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("loadstone_writes", False):
            # All reads of a transaction see one snapshot.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{patience_s:.3f}s'")

    event.listen(created, "begin", on_begin)
    return created


def explain(where: str, problem: DBAPIError) -> str:
    """Return an error as one line with a remedy."""
    # The primary message of a failed statement, or the whole message of a failed connection.
    diagnosis = getattr(problem.orig, "diag", None)
    message = (diagnosis and diagnosis.message_primary) or " ".join(str(problem.orig).split())
    if "does not exist" in message and "database" in message:
        return f"{where}: {message}; create it: createdb"
    remedy = next((text for sign, text in _REMEDIES.items() if sign in message), "")
    if problem.connection_invalidated:
        where = f"the connection to {where} was lost"
    return f"{where}: {message}" + (f"; {remedy}" if remedy else "")


def password(connection: Connection) -> str:
    """Return the password in use, wherever the driver found it."""
    raw = connection.connection.driver_connection
    return str(raw.info.password) if raw is not None else ""


def lock_migration(connection: Connection) -> None:
    """Wait for other processes that migrate; the lock ends with the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
