//! Target of requests: resolved addresses and TLS configuration.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;
use crate::cert_verifier::{AcceptAnyCert, NamedCertVerifier};
use crate::plan::{Http, Plan, Scheme, Tls};

/// ALPN protocol id of HTTP/2 (RFC 9113 3.2).
pub(crate) const ALPN: &[u8] = b"h2";

/// Addresses of a host, and TLS configuration.
pub(crate) struct Target {
    pub addresses: Vec<SocketAddr>,
    /// None for http.
    pub tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Target {
    /// Resolves the host and reads the files that the plan names.
    ///
    /// With `limits.loopback_only`, refuses a host with any other address. The checked addresses
    /// are those that are connected to: the host is not resolved again.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Error> {
        let origin = &plan.origin;
        let tls = match origin.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let name = ServerName::try_from(origin.host.clone());
                let name = name.map_err(|_| Error::plan("origin.host", "is not a host name"))?;
                let mut config = config(&origin.tls)?;
                if !plan.resumes_tls() {
                    config.resumption = Resumption::disabled();
                }
                if plan.placement.http == Http::Two {
                    // Only h2: a server without it must not fall back to HTTP/1.1.
                    config.alpn_protocols = vec![ALPN.to_vec()];
                }
                Some((TlsConnector::from(Arc::new(config)), name))
            }
        };
        let target = Self { addresses: addresses(&origin.host, origin.port)?, tls };
        if plan.limits.loopback_only {
            target.require_local(&origin.host)?;
        }
        Ok(target)
    }

    fn require_local(&self, host: &str) -> Result<(), Error> {
        let is_outside = |address: &&SocketAddr| !is_loopback(**address);
        let Some(outside) = self.addresses.iter().find(is_outside) else { return Ok(()) };
        let ip = outside.ip();
        let reason = format!("{host} ({ip}) is not loopback, and limits.loopback_only is set");
        Err(Error::plan("origin.host", reason))
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    // ::ffff:127.0.0.1 is 127.0.0.1.
    address.ip().to_canonical().is_loopback()
}

fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let refuse = |reason: String| Error::Environment(format!("cannot find host {host}: {reason}"));
    let found = (host, port).to_socket_addrs().map_err(|error| refuse(error.to_string()))?;
    let addresses: Vec<_> = found.collect();
    if addresses.is_empty() {
        return Err(refuse("it has no address".to_owned()));
    }
    Ok(addresses)
}

fn config(tls: &Tls) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Environment(format!("TLS cannot be set up: {error}")))?;
    let builder = if tls.verify {
        let named = tls.ca_file.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let roots = Arc::new(roots(tls.ca_file.as_deref(), &named)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let refuse = |error| Error::Environment(format!("TLS cannot be set up: {error}"));
        let verifier = NamedCertVerifier::new(verifier.map_err(refuse)?, named);
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCert(provider)))
    };
    let Some(cert_file) = &tls.cert_file else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(cert_file)?;
    let key_file = tls.key_file.as_ref().unwrap_or(cert_file);
    let key = PrivateKeyDer::from_pem_file(key_file)
        .map_err(|error| Error::file(key_file, &format!("no private key in PEM form: {error}")))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| Error::file(cert_file, &format!("cannot be shown to servers: {error}")))
}

/// Returns the CAs of the file, else those of the system.
fn roots(ca_file: Option<&str>, named: &[CertificateDer<'static>]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        for certificate in named {
            roots.add(certificate.clone()).map_err(|error| Error::file(path, &error))?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let mut reason = "this system has no certificate authorities; name a CA file".to_owned();
        if let Some(error) = found.errors.first() {
            let _ = write!(reason, " ({error})");
        }
        return Err(Error::Environment(reason));
    }
    Ok(roots)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |error| Error::file(path, &format!("no certificates in PEM form: {error}"));
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(refuse)?.collect();
    let found = found.map_err(refuse)?;
    if found.is_empty() {
        return Err(Error::file(path, &"holds no certificate in PEM form"));
    }
    Ok(found)
}
