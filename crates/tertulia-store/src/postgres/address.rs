//! Address of a database: a `postgres://` URL, shown without its password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode as Negotiated};

/// Port of PostgreSQL unless the URL names another.
const PORT: u16 = 5432;

/// How the connection is encrypted, in the words of libpq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server offers it, without looking at its certificate.
    #[default]
    Prefer,
    /// Always, without looking at the server's certificate unless there is a root certificate.
    Require,
    /// Always, with a certificate that a trusted authority signed.
    VerifyCa,
    /// Always, with a certificate that a trusted authority signed for this host.
    VerifyFull,
}

impl FromStr for SslMode {
    type Err = String;

    fn from_str(text: &str) -> Result<SslMode, String> {
        Ok(match text {
            "disable" => SslMode::Disable,
            "prefer" | "allow" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            other => {
                return Err(format!(
                    "sslmode is disable, prefer, require, verify-ca or verify-full, not '{other}'"
                ));
            }
        })
    }
}

/// Where a PostgreSQL database is. `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub struct PostgresAddress {
    /// The URL without the password.
    shown: String,
    config: Config,
    password: Option<String>,
    ssl_mode: SslMode,
    root_certificate: Option<PathBuf>,
}

impl PostgresAddress {
    /// Parses a URL: `postgres://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE][?NAME=VALUE…]`. The error
    /// does not contain the password.
    pub fn parse(url: &str) -> Result<PostgresAddress, String> {
        let (scheme, rest) = url.split_once("://").ok_or("it has no '://'")?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(format!("'{scheme}' is not PostgreSQL"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = match place.find('/') {
            Some(slash) => place.split_at(slash),
            None => (place, ""),
        };
        let (mut user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let mut password = None;
        if let Some((name, secret)) = user.and_then(|user| user.split_once(':')) {
            user = Some(name);
            password = Some(decoded(secret)?);
        }
        let mut others = Vec::new();
        let mut shown_settings = Vec::new();
        let mut ssl_mode = SslMode::default();
        let mut root_certificate = None;
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            // The rest of a password with a question mark must not be shown as an unknown setting.
            if !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
                return Err(
                    "a setting after its '?' has no name; '?' in a password is written %3F"
                        .to_owned(),
                );
            }
            match name {
                "password" => {
                    password = Some(decoded(value)?);
                    continue;
                }
                "sslmode" => ssl_mode = decoded(value)?.parse()?,
                "sslrootcert" => root_certificate = Some(PathBuf::from(decoded(value)?)),
                _ => others.push(setting),
            }
            shown_settings.push(setting);
        }
        let user = user.map_or(String::new(), |user| format!("{user}@"));
        let url = |settings: &[&str]| {
            let settings = match settings {
                [] => String::new(),
                settings => format!("?{}", settings.join("&")),
            };
            format!("postgres://{user}{hosts}{database}{settings}")
        };
        let mut config = Config::from_str(&url(&others)).map_err(|error| reasons(&error))?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        config.ssl_mode(match ssl_mode {
            SslMode::Disable => Negotiated::Disable,
            SslMode::Prefer => Negotiated::Prefer,
            _ => Negotiated::Require,
        });
        Ok(PostgresAddress {
            shown: url(&shown_settings),
            config,
            password,
            ssl_mode,
            root_certificate,
        })
    }

    /// Sets the password, unless the URL has one.
    #[must_use]
    pub fn or_password(mut self, password: Option<String>) -> PostgresAddress {
        self.password = self.password.or(password);
        self
    }

    /// Returns true if the URL has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns the host, or the folder of the server's socket.
    pub fn host(&self) -> String {
        match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(PORT)
    }

    /// Returns the role that the URL names.
    pub fn user(&self) -> Option<&str> {
        self.config.get_user()
    }

    /// Returns the database; PostgreSQL's default is that of the role's name.
    pub fn database(&self) -> Option<&str> {
        self.config.get_dbname().or(self.config.get_user())
    }

    /// Returns how the connection is encrypted.
    pub fn ssl_mode(&self) -> SslMode {
        self.ssl_mode
    }

    /// Returns the file of trusted root certificates, if the URL names one.
    pub(super) fn root_certificate(&self) -> Option<&PathBuf> {
        self.root_certificate.as_ref()
    }

    /// Returns host and port, for errors.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", self.host(), self.port())
    }

    /// Returns the settings of a connection.
    pub(super) fn config(&self) -> Config {
        let mut config = self.config.clone();
        if let Some(password) = &self.password {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("tertulia");
        }
        config
    }
}

impl PartialEq for PostgresAddress {
    fn eq(&self, other: &PostgresAddress) -> bool {
        (&self.shown, &self.password) == (&other.shown, &other.password)
    }
}

impl Eq for PostgresAddress {}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Decodes `%20` and the like.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push(u8::try_from(high * 16 + low).unwrap_or(0)),
            _ => return Err("a '%' in it is not followed by two digits".to_owned()),
        }
    }
    String::from_utf8(bytes).map_err(|_| "its percent-encoding is not UTF-8".to_owned())
}

/// Returns an error with its causes.
pub(super) fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_never_shown() {
        let check = |url: &str, shown: &str, password: Option<&str>| {
            let address = PostgresAddress::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
            assert_eq!(address.password.as_deref(), password);
        };
        check("postgres://h/d", "postgres://h/d", None);
        check("postgresql://u@h:6432/d", "postgres://u@h:6432/d", None);
        check(
            "postgres://u:s%40cret@h/d?sslmode=require",
            "postgres://u@h/d?sslmode=require",
            Some("s@cret"),
        );
        check(
            "postgres://u:p@ss@h/d?password=other&application_name=x",
            "postgres://u@h/d?application_name=x",
            Some("other"),
        );
        check(
            "postgres://u@%2Frun%2Fpg/d",
            "postgres://u@%2Frun%2Fpg/d",
            None,
        );
    }

    #[test]
    fn a_wrong_url_is_refused_in_words() {
        let check = |url: &str, words: &str| {
            let error = PostgresAddress::parse(url).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        };
        check("mysql://u:hunter2@h/d", "not PostgreSQL");
        check("postgres://u:hunter2@h/d?sslmode=maybe", "sslmode is");
        check("postgres://u:hunter2@h/d?unknown=1", "unknown");
        check("postgres://u:hunter2@h:port/d", "port");
        check("postgres://u:hunter2%4@h/d", "two digits");
    }

    #[test]
    fn parts_for_a_password_file() {
        let address = PostgresAddress::parse("postgres://ann@db.example:6432/notes").unwrap();
        assert_eq!(address.host(), "db.example");
        assert_eq!(address.port(), 6432);
        assert_eq!(address.user(), Some("ann"));
        assert_eq!(address.database(), Some("notes"));
        let address = PostgresAddress::parse("postgres://ann@%2Frun%2Fpg").unwrap();
        assert_eq!(address.host(), "/run/pg");
        assert_eq!((address.port(), address.database()), (5432, Some("ann")));
    }
}
