"""Apache with mod_wsgi in daemon mode, as Debian packages both."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program, unprivileged
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.system.say import Say

APACHE = Program("apache2", "apache2")
MODULES = "/usr/lib/apache2/modules"
# Debian's mod_wsgi is linked to Debian's Python, so the environment must be created with it.
INTERPRETER = "/usr/bin/python3"

# process-group and application-group in the alias: each daemon loads the application at its start,
# not at its first request.
CONF = """\
ServerRoot {run}
ServerName {host}
PidFile {pid_file}
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
{tls}LoadModule status_module {modules}/mod_status.so
Listen {host}:{status_port}
<VirtualHost {host}:{status_port}>
    <IfModule ssl_module>
        SSLEngine off
    </IfModule>
    <Location />
        SetHandler server-status
        Require all granted
    </Location>
</VirtualHost>
{includes}"""
TLS = """\
LoadModule ssl_module {modules}/mod_ssl.so
SSLSessionCache none
SSLEngine on
SSLProtocol -all +TLSv1.2 +TLSv1.3
SSLCertificateFile {certificates.valid}
"""
# Passed on to the application as SSL_CLIENT_CERT.
CLIENTS = """\
SSLCACertificateFile {certificates.ca}
SSLVerifyClient optional
SSLVerifyDepth 1
SSLOptions +ExportCertData
"""


@dataclass(frozen=True, slots=True)
class Apache(ApplicationServer):
    """The event MPM in front of mod_wsgi's daemons."""

    status_port: int = 0  # of mod_status
    includes: tuple[Path, ...] = ()  # further configuration, which may hold secrets
    certificates: ServerCertificates | None = None  # None: it serves without TLS
    asks_clients: bool = False  # for a certificate
    kind = "apache"
    programs = (
        APACHE,
        Program(f"{MODULES}/mod_wsgi.so", "libapache2-mod-wsgi-py3"),
        Program(INTERPRETER, "python3-venv"),
    )

    @property
    def _pid_file(self) -> Path:
        return self.conf.with_suffix(".pid")

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration, and create certificates if it serves over TLS."""
        tls = ""
        if self.certificates is not None:
            self.certificates.make()
            tls = (TLS + (CLIENTS if self.asks_clients else "")).format(
                modules=MODULES, certificates=self.certificates
            )
        text = CONF.format(
            site=self.site,
            run=self.conf.parent,
            pid_file=self._pid_file,
            name=self.name,
            host=HOST,
            log=self.log,
            modules=MODULES,
            app=self.application,
            prefix=self.application.python.parent.parent,
            status_port=self.status_port,
            sockets=self.conf.parent / "wsgi",
            tls=tls,
            includes="".join(f'Include "{file}"\n' for file in self.includes),
        )
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground; mod_wsgi refuses to run applications as root."""
        # After a reboot, another process may have the pid of one that was killed.
        self._pid_file.unlink(missing_ok=True)
        return self.serve(*unprivileged((APACHE.path(), "-f", str(self.conf), "-DFOREGROUND")))

    def healthy(self) -> bool:
        """Return whether every worker has loaded the application and the health check passes."""
        ca = None if self.certificates is None else self.certificates.ca
        return self.has_loaded() and answers(self.site, self.application.health, ca)

    def statistics(self) -> str:
        """Return the URL of mod_status."""
        return f"apache://{HOST}:{self.status_port}/?name={self.name}"

    def facts(self) -> Facts:
        """Version."""
        return (
            ("web server", f"apache {APACHE.version('-v')} (mod_wsgi, event MPM)"),
            *((("TLS", "ended by apache"),) if self.certificates is not None else ()),
            *((("client certificates", "asked for by apache"),) if self.asks_clients else ()),
        )
