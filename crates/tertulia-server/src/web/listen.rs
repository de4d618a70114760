//! Accepts connections, with TLS or without, and limits how many there are and how slow they may be.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tertulia_formats::html;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::Web;
use super::handle::handle;

/// Maximum number of connections.
const CONNECTIONS: usize = 256;
/// Time for the head of a request, and for the handshake of TLS.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum bytes of the head of a request.
const LARGEST_HEAD: usize = 32 * 1024;
/// Pause after a failed accept, such as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a certificate chain and its key from PEM files.
pub fn tls(certificate: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| wrong(certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts connections until the server shuts down; each is served by a task.
pub async fn listen(web: Arc<Web>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    // Reading the grammars for code takes a while: the first page need not wait for it.
    tokio::task::spawn_blocking(|| html::preview("ls"));
    loop {
        let accepted = async {
            // Never closed, so it always has a permit at last.
            let slot = slots.clone().acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = web.hub.ending().cancelled() => return,
            accepted = accepted => accepted,
        };
        match (slot, accepted) {
            (Ok(slot), Ok((stream, _))) => {
                let task = connection(web.clone(), stream, tls.clone(), slot);
                web.clients.spawn(task);
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn connection(
    web: Arc<Web>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    slot: OwnedSemaphorePermit,
) {
    // Small frames of a streaming answer must not wait for each other.
    let _ = stream.set_nodelay(true);
    let ending = web.hub.ending().clone();
    let served = async {
        match tls {
            None => serve(web, stream).await,
            Some(tls) => {
                let shaken = tokio::time::timeout(PATIENCE, tls.accept(stream)).await;
                if let Ok(Ok(stream)) = shaken {
                    serve(web, stream).await;
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = ending.cancelled() => {}
    }
    drop(slot);
}

async fn serve<S>(web: Arc<Web>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let web = web.clone();
        async move { Ok::<_, Infallible>(handle(web, request.map(Body::new)).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    // A client that breaks off or is too slow is none of the server's trouble.
    drop(served);
}
