//! Location of a store as users write it.

use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use tertulia_store::postgres::PostgresAddress;

use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// Forms of the URL.
#[cfg(feature = "postgres")]
pub(super) const FORMS: &str =
    "sqlite:FILE, sqlite::memory:, files:DIR or postgres://HOST/DATABASE";
/// Forms of the URL.
#[cfg(not(feature = "postgres"))]
pub(super) const FORMS: &str = "sqlite:FILE, sqlite::memory: or files:DIR";

/// Location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// SQLite database file.
    Sqlite(PathBuf),
    /// Folder of log files.
    Files(PathBuf),
    /// PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresAddress>),
    /// In memory; nothing is saved.
    Memory,
}

impl StoreUrl {
    /// Returns true for the URL of a PostgreSQL database, valid or not.
    pub fn is_postgres(url: &str) -> bool {
        url.starts_with("postgres:") || url.starts_with("postgresql:")
    }

    /// Parses a URL of [`FORMS`]; relative paths are resolved against `base`. Errors do not contain
    /// a password.
    pub fn parse(url: &str, base: &Path) -> CommandResult<StoreUrl> {
        let place = |path: &str| {
            let path = path
                .strip_prefix("//")
                .filter(|rest| rest.starts_with('/'))
                .unwrap_or(path);
            env::placed(path, base)
        };
        match url.split_once(':') {
            Some(("sqlite", ":memory:")) => Ok(StoreUrl::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(StoreUrl::Sqlite(place(path))),
            Some(("files", path)) if !path.is_empty() => Ok(StoreUrl::Files(place(path))),
            Some(("postgres" | "postgresql", _)) => postgres(url),
            _ => Err(CommandError::new(
                ErrorKind::Usage,
                format!("'{}' is not a store", without_password(url)),
            )
            .hint(format!("write {FORMS}"))),
        }
    }
}

/// Returns a text without the passwords of a URL in it, also of one that cannot be parsed: what
/// stands between a colon and the last `@`, and the values of parameters for passwords.
pub fn without_password(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = url.split_at(start);
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, rest),
    };
    let mut shown = scheme.to_owned();
    if let Some(user) = user {
        match user.split_once(':') {
            Some((name, _)) => shown.push_str(&format!("{name}:***@")),
            None => shown.push_str(&format!("{user}@")),
        }
    }
    let parts = place.split_inclusive(['?', '&']);
    shown.extend(parts.map(|part| match part.split_once('=') {
        Some((name, value)) if name.contains("password") => {
            format!("{name}=***{}", if value.ends_with('&') { "&" } else { "" })
        }
        _ => part.to_owned(),
    }));
    shown
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> CommandResult<StoreUrl> {
    let address = PostgresAddress::parse(url).map_err(|reason| {
        let words = format!("the URL of the PostgreSQL store is not valid: {reason}");
        CommandError::new(ErrorKind::Usage, words)
            .hint("write postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full")
    })?;
    Ok(StoreUrl::Postgres(Box::new(address)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_url: &str) -> CommandResult<StoreUrl> {
    let words = "this program was built without PostgreSQL";
    Err(CommandError::new(ErrorKind::Usage, words)
        .hint("build it with the Cargo feature `postgres`, which is on by default"))
}

/// Formats the URL as `parse` reads it, without a password.
impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Files(path) => write!(f, "files:{}", path.display()),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(address) => write!(f, "{address}"),
            StoreUrl::Memory => f.write_str("sqlite::memory:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn passwords_are_left_out_of_what_is_no_url() {
        let check = |url: &str, shown: &str| assert_eq!(without_password(url), shown);
        check("mysql://u:hunter2@h:1/d", "mysql://u:***@h:1/d");
        check("mysql://u:hun/t@er:2@h", "mysql://u:***@h");
        check("mysql://u:hunter?2@h", "mysql://u:***@h");
        check("u:hunter2@h/d", "u:***@h/d");
        check("x://h/d?password=a&b=c", "x://h/d?password=***&b=c");
        check("x://h/d?b=c&sslpassword=a", "x://h/d?b=c&sslpassword=***");
        for plain in ["desk", "ssh://ada@desk:22/x", "x:/a b/c", "x://h?a=b", ""] {
            check(plain, plain);
        }
    }
}
