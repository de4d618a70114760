//! Accepts connections, with TLS or without, and limits how many there are and how slow they may be.
//! Every connection is accepted: if there is no place for it, another one has to go.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::Web;
use super::handle::handle;
use super::heads::Checked;
use super::places::{Places, State};
use super::throttle::Network;

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
    let places = Arc::new(Mutex::new(Places::new(web.places)));
    // Reading the grammars for code takes a while: the first page need not wait for it.
    tokio::task::spawn_blocking(|| html::preview("ls"));
    loop {
        let accepted = tokio::select! {
            biased;
            () = web.hub.ending().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let visit = Visit::begin(&places, address.ip().into());
                let task = connection(web.clone(), stream, tls.clone(), visit);
                web.clients.spawn(task);
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// A connection in its place, which it leaves when it is dropped.
pub struct Visit {
    places: Arc<Mutex<Places<CancellationToken>>>,
    network: Network,
    number: u64,
    /// Cancelled when the place is needed for another connection.
    going: CancellationToken,
    /// Whether it waits for the delayed answer to a wrong login.
    is_delayed: AtomicBool,
}

impl Visit {
    fn begin(places: &Arc<Mutex<Places<CancellationToken>>>, network: Network) -> Visit {
        let going = CancellationToken::new();
        let (number, gone) = lock(places).enter(network, going.clone());
        if let Some(gone) = gone {
            gone.cancel();
        }
        Visit {
            places: places.clone(),
            network,
            number,
            going,
            is_delayed: AtomicBool::new(false),
        }
    }

    /// Returns the network that it comes from.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Says what it does now.
    pub fn set(&self, state: State) {
        lock(&self.places).set(self.number, state);
    }

    /// Waits before a wrong login is answered. Returns false if the place is needed before.
    pub async fn wait(&self, delay: Duration) -> bool {
        self.is_delayed.store(true, Ordering::Relaxed);
        self.set(State::Delayed);
        let is_over = tokio::select! {
            biased;
            () = self.going.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        };
        self.is_delayed.store(!is_over, Ordering::Relaxed);
        is_over
    }

    /// Waits until the place is needed.
    async fn needed(&self) {
        self.going.cancelled().await;
        if self.is_delayed.load(Ordering::Relaxed) {
            // Its answer comes at once, and ends the connection.
            std::future::pending().await
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        lock(&self.places).leave(self.number);
    }
}

fn lock<T>(places: &Mutex<Places<T>>) -> MutexGuard<'_, Places<T>> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connection(web: Arc<Web>, stream: TcpStream, tls: Option<TlsAcceptor>, visit: Visit) {
    let visit = Arc::new(visit);
    // Small frames of a streaming answer must not wait for each other.
    let _ = stream.set_nodelay(true);
    let ending = web.hub.ending().clone();
    let served = async {
        match tls {
            None => serve(web, &visit, stream).await,
            Some(tls) => {
                let shaken = tokio::time::timeout(PATIENCE, tls.accept(stream)).await;
                if let Ok(Ok(stream)) = shaken {
                    serve(web, &visit, stream).await;
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = ending.cancelled() => {}
        () = visit.needed() => {}
    }
}

async fn serve<S>(web: Arc<Web>, visit: &Arc<Visit>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (web, visit) = (web.clone(), visit.clone());
        async move {
            visit.set(State::Active);
            let response = handle(&web, &visit, request.map(Body::new)).await;
            visit.set(State::Idle);
            Ok::<_, Infallible>(response)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(Checked::new(stream)), service)
        .with_upgrades()
        .await;
    // A client that breaks off or is too slow is none of the server's trouble.
    drop(served);
}
