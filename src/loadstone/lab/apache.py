"""Apache with mod_wsgi in daemon mode, as Debian packages both."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Part, Say, Site, serves
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program, unprivileged

APACHE = Program("apache2", "apache2")
MODULES = "/usr/lib/apache2/modules"
# Debian's mod_wsgi is linked to Debian's Python: the environment must be made with that one.
INTERPRETER = "/usr/bin/python3"

# process-group and application-group in the alias: each daemon loads the application at its start,
# not at its first request.
CONF = """\
ServerRoot {site.run}
ServerName {host}
PidFile {site.run}/{name}.pid
Listen {host}:{site.port}
ErrorLog {log}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {modules}/mod_wsgi.so
Mutex file:{site.run} default
WSGISocketPrefix {sockets}
WSGIDaemonProcess app processes={site.workers} threads={site.threads} python-home={prefix} \
home={site.run} display-name={name}
WSGIPassAuthorization On
WSGIScriptAlias / {app.folder}/{app.module}.py process-group=app application-group=%{{GLOBAL}}
<Directory {app.folder}>
    Require all granted
</Directory>
"""


@dataclass(frozen=True, slots=True)
class Apache(Part):
    """The event MPM in front of mod_wsgi's daemons."""

    application: Application
    site: Site
    programs = (
        APACHE,
        Program(f"{MODULES}/mod_wsgi.so", "libapache2-mod-wsgi-py3"),
        Program(INTERPRETER, "python3-venv"),
    )

    @property
    def name(self) -> str:
        """The word for it."""
        return f"apache{self.site.suffix}"

    @property
    def _conf(self) -> Path:
        return self.site.run / f"{self.name}.conf"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        text = CONF.format(
            site=self.site,
            name=self.name,
            host=HOST,
            log=self._log,
            modules=MODULES,
            app=self.application,
            prefix=self.application.python.parent.parent,
            sockets=self.site.run / "wsgi",
        )
        self._conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground; mod_wsgi refuses to run applications as root."""
        arguments = unprivileged((APACHE.path(), "-f", str(self._conf), "-DFOREGROUND"))
        variables = dict(self.application.variables)
        return processes.start(Command(arguments, self._log, self.site.folder, variables))

    def healthy(self) -> bool:
        """Every daemon has loaded, and it serves."""
        return serves(self.application, self.site, self._log)

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"apache {APACHE.version('-v')} (mod_wsgi, event MPM)"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
