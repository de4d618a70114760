//! [`Authenticator`]: where the credentials are kept, and who a request comes from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::access::Proof;
use super::credentials::{Credentials, Holder};
use super::throttle::Throttle;
use crate::host::{HostResult, StoreChanges};

/// Where the program keeps credentials.
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns them as they are now.
    fn read(&self) -> HostResult<Credentials>;

    /// Changes them: no other program does meanwhile.
    fn update(&self, change: &mut dyn FnMut(&mut Credentials)) -> HostResult<()>;

    /// Returns random bytes for a new secret.
    fn random(&self) -> HostResult<[u8; 32]>;

    /// Watches for changes by other programs. Returns `None` if they cannot be seen.
    fn changes(&self) -> Option<StoreChanges>;
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'a> {
    /// Value of the cookie.
    pub cookie: Option<&'a str>,
    /// Token in the header `Authorization`.
    pub bearer: Option<&'a str>,
}

impl Presented<'_> {
    /// Returns true if a wrong token counts as a wrong login. A browser sends its old cookie by itself.
    pub fn is_guess(self) -> bool {
        self.cookie.is_none() && self.bearer.is_some()
    }
}

/// Who may see the page.
pub struct Authenticator {
    store: Arc<dyn CredentialStore>,
    throttle: Mutex<Throttle>,
    began: Instant,
}

impl Authenticator {
    /// Creates an authenticator for kept credentials.
    pub fn new(store: Arc<dyn CredentialStore>) -> Authenticator {
        Authenticator {
            store,
            throttle: Mutex::default(),
            began: Instant::now(),
        }
    }

    /// Returns where the credentials are kept.
    pub fn store(&self) -> &Arc<dyn CredentialStore> {
        &self.store
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a login. Returns how long it waits, or `None` if too many wait.
    pub fn begin_login(&self) -> Option<Duration> {
        self.throttle().begin(self.began.elapsed())
    }

    /// Ends a login.
    pub fn end_login(&self, failed: bool) {
        self.throttle().end(self.began.elapsed(), failed);
    }

    /// Returns who a request comes from. Credentials that cannot be read admit no client.
    pub fn who(&self, presented: Presented<'_>, now: Timestamp) -> (Proof, Option<Holder>) {
        let Ok(credentials) = self.store.read() else {
            return (Proof::None, None);
        };
        // A cookie decides if there are both: it is what another site could make a browser send.
        if let Some(secret) = presented.cookie {
            let holder = credentials.by_cookie(secret, now);
            let access = holder.as_ref().map(|holder| holder.access);
            return (access.map_or(Proof::None, Proof::Cookie), holder);
        }
        let holder = presented
            .bearer
            .and_then(|secret| credentials.by_token(secret, now));
        let access = holder.as_ref().map(|holder| holder.access);
        (access.map_or(Proof::None, Proof::Bearer), holder)
    }

    /// Returns true if a holder still has access.
    pub fn still_has(&self, holder: &Holder, now: Timestamp) -> bool {
        let credentials = self.store.read();
        credentials.is_ok_and(|credentials| credentials.by_hash(&holder.hash, now).is_some())
    }
}
