//! The web page of the server: its address, who may see it, and the code with which a browser logs in.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tertulia_server::host::{HostResult, StoreChanges};
use tertulia_server::hub::Hub;
use tertulia_server::web::Web;
use tertulia_server::web::access::{PublicUrl, Site};
use tertulia_server::web::assets::Files;
use tertulia_server::web::authenticator::{Authenticator, CredentialStore};
use tertulia_server::web::credentials::{self, Credentials};
use tertulia_server::web::listen;
use tertulia_server::web::places::PlaceLimits;
use tertulia_server::web::throttle::Delays;
use tokio_util::task::TaskTracker;

use super::file_watch::FileWatch;
use super::trouble::trouble;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::private_file::{self, lock_of, replace};
use crate::settings::Settings;

/// File of codes, tokens and grants, in the data folder.
const FILE: &str = "web.json";

/// Where and how the page is served.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Address to listen on.
    pub bind: SocketAddr,
    /// Address that browsers use, if it is another one.
    pub public: Option<PublicUrl>,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether a proxy in front of it does TLS.
    pub behind_proxy: bool,
    /// Whether a browser is opened, which needs a code of its own.
    pub opens: bool,
}

impl WebOptions {
    /// Rejects options under which words would cross a network unencrypted.
    pub fn check(&self) -> CommandResult<()> {
        let usage = |words: &str| CommandError::new(ErrorKind::Usage, words);
        let is_near = self.bind.ip().is_loopback();
        if !is_near && self.tls.is_none() && !self.behind_proxy {
            let words = format!("{} is not on this machine only", self.bind.ip());
            return Err(usage(&words)
                .hint("encrypt it: --tls-cert FILE --tls-key FILE, or --behind-proxy --public-url URL")
                .hint("or keep 127.0.0.1 and forward the port: ssh -L 7417:127.0.0.1:7417 HOST"));
        }
        if self.behind_proxy && self.public.is_none() {
            return Err(usage("--behind-proxy needs the address of the proxy")
                .hint("add --public-url https://NAME"));
        }
        Ok(())
    }

    /// Returns the address for browsers, without a slash at its end.
    fn origin(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match &self.public {
            Some(public) => public.origin(),
            None if address.ip().is_unspecified() => {
                format!("{scheme}://localhost:{}", address.port())
            }
            None => format!("{scheme}://{address}"),
        }
    }
}

/// A page that is served.
#[derive(Clone, Debug)]
pub struct WebPage {
    /// Its address, with a one-time code.
    pub url: String,
    /// The same with another code, for the browser that is opened.
    pub to_open: Option<String>,
}

/// Serves the page.
pub fn serve(
    options: &WebOptions,
    settings: &Settings,
    hub: &Arc<Hub>,
    clients: &TaskTracker,
) -> CommandResult<WebPage> {
    let tls = match &options.tls {
        None => None,
        Some((certificate, key)) => Some(listen::tls(certificate, key).map_err(|error| {
            CommandError::new(ErrorKind::Invalid, "the certificate cannot be used").because(error)
        })?),
    };
    let listener = bind(options.bind)?;
    let address = listener
        .local_addr()
        .map_err(|error| unusable(options.bind, error))?;
    let listener = tokio::net::TcpListener::from_std(listener)
        .map_err(|error| unusable(options.bind, error))?;
    let site = Site::new(address, tls.is_some(), options.public.as_ref());
    let file = CredentialFile::of(settings);
    let origin = options.origin(address);
    file.change(|credentials| credentials.address = Some(origin.clone()))?;
    let page = WebPage {
        url: with_code(&origin, &file.new_code(false)?),
        to_open: match options.opens {
            true => Some(with_code(&origin, &file.new_code(false)?)),
            false => None,
        },
    };
    let web = Web {
        hub: hub.clone(),
        site,
        authenticator: Authenticator::new(Arc::new(file), Delays::default()),
        clients: clients.clone(),
        places: PlaceLimits::default(),
        files: Files::new().map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the page cannot be prepared").because(error)
        })?,
    };
    tokio::spawn(listen::listen(Arc::new(web), listener, tls));
    Ok(page)
}

/// Returns an address with a code where no server and no log sees it.
pub fn with_code(origin: &str, code: &str) -> String {
    format!("{origin}/#code={code}")
}

fn bind(address: SocketAddr) -> CommandResult<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| unusable(address, error))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| unusable(address, error))?;
    Ok(listener)
}

fn unusable(address: SocketAddr, error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let words = format!("another program listens on {address}");
            CommandError::new(ErrorKind::Conflict, words)
                .hint("stop it, or choose another address with --bind ADDR:PORT")
        }
        _ => {
            let words = format!("{address} cannot be listened on");
            CommandError::new(ErrorKind::Failed, words).because(error)
        }
    }
}

/// The file of codes, tokens and grants.
#[derive(Clone)]
pub struct CredentialFile {
    path: PathBuf,
    watch: FileWatch,
}

impl CredentialFile {
    /// Returns the file in the data folder.
    pub fn of(settings: &Settings) -> CredentialFile {
        let path = settings.cwd.join(&settings.data).join(FILE);
        CredentialFile {
            watch: FileWatch::new(&path),
            path,
        }
    }

    /// Reads the file. Without one, there are no credentials.
    pub fn load(&self) -> CommandResult<Credentials> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Credentials::default());
            }
            Err(error) => return Err(private_file::trouble(&self.path, "cannot be read", error)),
        };
        serde_json::from_str(&text).map_err(|error| invalid(&self.path, &error))
    }

    /// Changes the file while no other program does.
    pub fn change<T>(&self, change: impl FnOnce(&mut Credentials) -> T) -> CommandResult<T> {
        let _lock = lock_of(&self.path)?;
        let before = self.load()?;
        let mut credentials = before.clone();
        let done = change(&mut credentials);
        if credentials != before {
            let text = serde_json::to_string_pretty(&credentials)
                .map_err(|error| invalid(&self.path, &error))?;
            replace(&self.path, &format!("{text}\n"))?;
        }
        Ok(done)
    }

    /// Makes a one-time code.
    pub fn new_code(&self, read_only: bool) -> CommandResult<String> {
        let code = credentials::code(&random()?);
        self.change(|credentials| credentials.add_code(&code, read_only, now()))?;
        Ok(code)
    }
}

/// Returns the current time.
pub fn now() -> jiff::Timestamp {
    crate::open::clock().now()
}

/// Returns random bytes of the system.
pub fn random() -> CommandResult<[u8; 32]> {
    use chacha20poly1305::aead::OsRng;
    use chacha20poly1305::aead::rand_core::RngCore;
    let mut bytes = [0; 32];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| {
        CommandError::new(ErrorKind::Failed, "the system gives no random numbers").because(error)
    })?;
    Ok(bytes)
}

fn invalid(path: &Path, error: &serde_json::Error) -> CommandError {
    let words = format!("{} cannot be read: {error}", path.display());
    CommandError::new(ErrorKind::Invalid, words)
        .hint("delete it: all tokens and logins end with it")
}

impl CredentialStore for CredentialFile {
    fn read(&self) -> HostResult<Credentials> {
        self.load().map_err(|error| trouble(&error))
    }

    fn update(&self, change: &mut dyn FnMut(&mut Credentials)) -> HostResult<()> {
        self.change(change).map_err(|error| trouble(&error))
    }

    fn random(&self) -> HostResult<[u8; 32]> {
        random().map_err(|error| trouble(&error))
    }

    fn changes(&self) -> Option<StoreChanges> {
        self.watch.changes()
    }
}
