"""Apache with mod_wsgi in daemon mode, as Debian packages both."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program, unprivileged

APACHE = Program("apache2", "apache2")
MODULES = "/usr/lib/apache2/modules"
# Debian's mod_wsgi is linked to Debian's Python, so the environment must be created with it.
INTERPRETER = "/usr/bin/python3"

# process-group and application-group in the alias: each daemon loads the application at its start,
# not at its first request.
CONF = """\
ServerRoot {run}
ServerName {host}
PidFile {run}/{name}.pid
Listen {site.host}:{site.port}
ErrorLog {log}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {modules}/mod_wsgi.so
Mutex file:{run} default
WSGISocketPrefix {sockets}
WSGIDaemonProcess app processes={site.workers} threads={site.threads} python-home={prefix} \
home={run} display-name={name}
WSGIPassAuthorization On
WSGIScriptAlias / {app.folder}/{app.module}.py process-group=app application-group=%{{GLOBAL}}
<Directory {app.folder}>
    Require all granted
</Directory>
LoadModule status_module {modules}/mod_status.so
Listen {host}:{status_port}
<VirtualHost {host}:{status_port}>
    <Location />
        SetHandler server-status
        Require all granted
    </Location>
</VirtualHost>
{includes}"""


@dataclass(frozen=True, slots=True)
class Apache(ApplicationServer):
    """The event MPM in front of mod_wsgi's daemons."""

    status_port: int = 0  # of mod_status
    includes: tuple[Path, ...] = ()  # further configuration, which may hold secrets
    kind = "apache"
    programs = (
        APACHE,
        Program(f"{MODULES}/mod_wsgi.so", "libapache2-mod-wsgi-py3"),
        Program(INTERPRETER, "python3-venv"),
    )

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        text = CONF.format(
            site=self.site,
            run=self.conf.parent,
            name=self.name,
            host=HOST,
            log=self.log,
            modules=MODULES,
            app=self.application,
            prefix=self.application.python.parent.parent,
            status_port=self.status_port,
            sockets=self.conf.parent / "wsgi",
            includes="".join(f'Include "{file}"\n' for file in self.includes),
        )
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground; mod_wsgi refuses to run applications as root."""
        return self.serve(*unprivileged((APACHE.path(), "-f", str(self.conf), "-DFOREGROUND")))

    def statistics(self) -> str:
        """Return the URL of mod_status."""
        return f"apache://{HOST}:{self.status_port}/?name={self.name}"

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"apache {APACHE.version('-v')} (mod_wsgi, event MPM)"),)
