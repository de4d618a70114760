//! TLS of a connection, as `sslmode` and `sslrootcert` of the URL say.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{PostgresAddress, SslMode};
use crate::{StoreError, StoreResult};

/// Returns the TLS of a connection; it is used if the address and the server want it.
pub(super) fn connector(address: &PostgresAddress) -> StoreResult<MakeRustlsConnect> {
    let failed = |error: Error| StoreError::failed("cannot prepare TLS", error);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let checked = match (address.ssl_mode(), address.root_certificate()) {
        (SslMode::VerifyFull, _) => Some(Checked::Host),
        // As libpq does: a root certificate makes `require` look at the authority.
        (SslMode::VerifyCa, _) | (SslMode::Require, Some(_)) => Some(Checked::Authority),
        _ => None,
    };
    let mut pinned = Vec::new();
    let authority = match checked {
        None => None,
        Some(_) => {
            let roots = Arc::new(roots(address, &mut pinned)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(|error| StoreError::failed("cannot prepare TLS", error))?;
            Some(verifier)
        }
    };
    let verifier = Verifier {
        authority,
        pinned,
        is_host_checked: checked == Some(Checked::Host),
        provider,
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// What of a certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    Authority,
    Host,
}

/// Reads the trusted root certificates: those of a file, which are also `pinned`, or those of the
/// system.
fn roots(
    address: &PostgresAddress,
    pinned: &mut Vec<CertificateDer<'static>>,
) -> StoreResult<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match address.root_certificate() {
        Some(path) if path.as_os_str() != "system" => {
            let unreadable = |error: &dyn std::fmt::Display| {
                let what = format!("cannot read the root certificates in {}", path.display());
                StoreError::failed(what, error.to_string())
            };
            let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                pinned.push(certificate.clone());
                roots.add(certificate).map_err(|error| unreadable(&error))?;
            }
            if roots.is_empty() {
                return Err(unreadable(&"it has no certificate"));
            }
        }
        _ => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(StoreError::failed(
                    "the system has no root certificates",
                    "name a file of them with sslrootcert=FILE in the URL of the store",
                ));
            }
        }
    }
    Ok(roots)
}

/// Checks as much of the server's certificate as the address asks for.
#[derive(Debug)]
struct Verifier {
    /// Checks the chain up to a root; `None` accepts every certificate.
    authority: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted as they are: a server that signed its own is named by it.
    pinned: Vec<CertificateDer<'static>>,
    is_host_checked: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        if self.pinned.iter().any(|known| known == end_entity) {
            if self.is_host_checked {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let verified = authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The name is checked last, so everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_host_checked => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
