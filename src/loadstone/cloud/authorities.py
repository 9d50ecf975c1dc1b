"""The certificate authorities that this system trusts."""

import os
import ssl

# All authorities in one file. Some distributions keep no folder that OpenSSL can search.
_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
)


def system_authorities() -> str | bool:
    """Return the file or folder of the authorities, as requests takes it; True if there is none.

    SSL_CERT_FILE and SSL_CERT_DIR choose others. The engine trusts the same, so that preparation
    accepts the certificates that load accepts. With True, requests trusts its own bundle.
    """
    paths = ssl.get_default_verify_paths()
    chosen = os.environ.get(paths.openssl_cafile_env) or os.environ.get(paths.openssl_capath_env)
    files = () if chosen else filter(os.path.isfile, _FILES)
    return next(iter(files), None) or paths.cafile or paths.capath or True
