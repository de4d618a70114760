//! Password of a PostgreSQL store: in the URL, in `PGPASSWORD`, printed by `password_command` of the
//! settings, or in a password file, in this order.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tertulia_store::postgres::PostgresAddress;
use tertulia_store::{StoreError, StoreResult};

use super::Settings;
use crate::env;

/// Returns the address with its password, if there is one anywhere.
pub fn with_password(
    address: &PostgresAddress,
    settings: &Settings,
) -> StoreResult<PostgresAddress> {
    if address.has_password() {
        return Ok(address.clone());
    }
    let password = match env::text(env::PGPASSWORD) {
        Some(password) => Some(password),
        None => match settings.password_command.as_deref() {
            Some(command) => Some(printed(command)?),
            None => in_file(address)?,
        },
    };
    Ok(address.clone().or_password(password))
}

fn no_password(reason: String) -> StoreError {
    StoreError::Failed {
        what: "there is no password for the store".to_owned(),
        source: reason.into(),
    }
}

/// Runs the command and returns its first line.
fn printed(command: &[String]) -> StoreResult<String> {
    let failed = |reason: String| {
        no_password(format!(
            "{reason}; check `password_command` in [postgres] of your settings"
        ))
    };
    let Some((program, arguments)) = command.split_first() else {
        return Err(failed("`password_command` is empty".to_owned()));
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("{program} cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("{program} failed ({})", output.status)));
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|_| failed(format!("{program} printed something else than text")))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(failed(format!("{program} printed nothing"))),
    }
}

/// Finds the password in the password file of PostgreSQL's programs.
fn in_file(address: &PostgresAddress) -> StoreResult<Option<String>> {
    let default = || env::path("HOME").map(|home| home.join(".pgpass"));
    let Some(path): Option<PathBuf> = env::path(env::PGPASSFILE).or_else(default) else {
        return Ok(None);
    };
    let Ok(found) = fs::metadata(&path) else {
        return Ok(None);
    };
    if found.permissions().mode() & 0o077 != 0 {
        return Err(no_password(format!(
            "{0} may be read by other users; `chmod 600 {0}` forbids it",
            path.display()
        )));
    }
    let text = fs::read_to_string(&path)
        .map_err(|error| no_password(format!("{} cannot be read: {error}", path.display())))?;
    Ok(password_in(&text, address))
}

/// Returns the password of the first line that fits: `host:port:database:user:password`, in which a
/// star fits everything and a backslash escapes a colon.
fn password_in(text: &str, address: &PostgresAddress) -> Option<String> {
    let host = match address.host() {
        folder if folder.starts_with('/') => "localhost".to_owned(),
        host => host,
    };
    let wanted = [
        host,
        address.port().to_string(),
        address.database().unwrap_or_default().to_owned(),
        address.user().unwrap_or_default().to_owned(),
    ];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let (password, names) = fields.split_last()?;
            let fits = names.len() == wanted.len()
                && names
                    .iter()
                    .zip(&wanted)
                    .all(|(name, wanted)| name == "*" || name == wanted);
            fits.then(|| password.clone())
        })
}

/// Splits a line at its first four colons that are not escaped.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let is_border = letter == ':' && fields.len() < 5;
        let letter = match letter {
            '\\' => letters.next(),
            letter => Some(letter),
        };
        match (is_border, fields.last_mut()) {
            (true, _) => fields.push(String::new()),
            (false, Some(field)) => field.extend(letter),
            (false, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = "# a comment\n\
            other:5432:*:*:wrong\n\
            db:5432:notes:bob:wrong\n\
            db:5432:notes:ann:with\\:colon\\\\:and more\n\
            db:*:*:*:late\n\
            localhost:*:*:ann:socket\n";
        let check = |url: &str, expected: Option<&str>| {
            let address = PostgresAddress::parse(url).unwrap();
            assert_eq!(password_in(file, &address).as_deref(), expected, "{url}");
        };
        check("postgres://ann@db/notes", Some("with:colon\\:and more"));
        check("postgres://ann@db:6432/notes", Some("late"));
        check("postgres://ann@%2Frun/notes", Some("socket"));
        check("postgres://ann@elsewhere/notes", None);
    }
}
