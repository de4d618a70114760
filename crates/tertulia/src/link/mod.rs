//! The store that sessions are exchanged with: on this machine, or on another one over SSH.

mod client;
pub mod lines;
mod ssh;
mod watch;
pub mod wire;

use std::path::Path;

pub use client::Remote;
pub use ssh::SshUrl;
pub use watch::watch_store;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::{StoreUrl, without_password};

/// Where the other store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartnerUrl {
    /// On this machine.
    Store(StoreUrl),
    /// On another machine.
    Ssh(SshUrl),
}

impl PartnerUrl {
    /// Parses the URL of a store or `ssh://[USER@]HOST[:PORT][/PATH]`.
    pub fn parse(url: &str, base: &Path) -> CommandResult<PartnerUrl> {
        if let Some(rest) = url.strip_prefix("ssh://") {
            return SshUrl::parse(rest).map(PartnerUrl::Ssh).map_err(|reason| {
                let words = format!("'{}' is wrong: {reason}", without_password(url));
                CommandError::new(ErrorKind::Usage, words)
                    .hint("write ssh://[USER@]HOST[:PORT][/PATH]")
            });
        }
        match StoreUrl::parse(url, base) {
            // It says what is wrong with the URL.
            Err(error) if StoreUrl::is_postgres(url) => Err(error),
            Ok(StoreUrl::Memory) | Err(_) => {
                let url = without_password(url);
                let words = format!("'{url}' is not a store");
                Err(CommandError::new(ErrorKind::Usage, words).hint(
                    "write sqlite:FILE, files:DIR, postgres://HOST/DATABASE or ssh://HOST[/PATH]",
                ))
            }
            Ok(store) => Ok(PartnerUrl::Store(store)),
        }
    }
}

impl std::fmt::Display for PartnerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PartnerUrl::Store(url) => url.fmt(f),
            PartnerUrl::Ssh(url) => url.fmt(f),
        }
    }
}
