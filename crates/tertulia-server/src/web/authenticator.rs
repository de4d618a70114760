//! [`Authenticator`]: where the credentials are kept, and who a request comes from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::access::Proof;
use super::credentials::{Credentials, Holder};
use super::throttle::{Delays, Network, Throttle};
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
    /// Secret in the storage of the page, in a header.
    pub secret: Option<&'a str>,
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
    pub fn new(store: Arc<dyn CredentialStore>, delays: Delays) -> Authenticator {
        Authenticator {
            store,
            throttle: Mutex::new(Throttle::new(delays)),
            began: Instant::now(),
        }
    }

    /// Returns where the credentials are kept.
    pub fn store(&self) -> &Arc<dyn CredentialStore> {
        &self.store
    }

    /// Counts a wrong login. Returns how long its answer waits.
    pub fn fail(&self, network: Network) -> Duration {
        let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        throttle.fail(network, self.began.elapsed())
    }

    /// Returns who a request comes from. Credentials that cannot be read admit no client.
    pub fn who(&self, presented: Presented<'_>, now: Timestamp) -> (Proof, Option<Holder>) {
        let Ok(credentials) = self.store.read() else {
            return (Proof::None, None);
        };
        // A cookie decides if there are both: it is what another site could make a browser send.
        if let Some(secret) = presented.cookie {
            let holder = credentials.by_cookie(secret, now);
            let proof = holder.as_ref().map_or(Proof::None, |holder| {
                let storage = presented.secret;
                match storage.is_some_and(|secret| holder.has_secret(secret)) {
                    true => Proof::Login(holder.access),
                    false => Proof::Cookie(holder.access),
                }
            });
            return (proof, holder);
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
