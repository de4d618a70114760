//! Addresses of stores on other machines, and the command that connects to one.

use std::fmt;
use std::process::{Command, Stdio};

use crate::settings::quoted;

/// `ssh://[USER@]HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshUrl {
    /// Host, with the user in front if one is named.
    host: String,
    port: Option<u16>,
    /// Path of the store there; its default store if there is none.
    path: Option<String>,
}

impl SshUrl {
    /// Parses what follows `ssh://`.
    pub(super) fn parse(text: &str) -> Result<SshUrl, &'static str> {
        let (address, path) = match text.find('/') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        // `/~/notes` is below the home folder.
        let path = path.filter(|path| *path != "/");
        let path = path.map(|path| path.strip_prefix("/~/").map_or(path.to_owned(), in_home));
        let user = address.rsplit_once('@').map(|(user, _)| user);
        if user.is_some_and(|user| user.contains(':')) {
            return Err("it has a password; ssh asks for it, or uses a key");
        }
        // Of an IPv6 address in brackets, the last colon is inside.
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().map_err(|_| "the port is no number")?;
                (host, Some(port))
            }
            _ => (address, None),
        };
        let name = host.rsplit('@').next().unwrap_or_default();
        if name.is_empty() {
            return Err("it names no host");
        }
        // ssh would take it for an option.
        if host.starts_with('-') || name.starts_with('-') {
            return Err("a host does not begin with a hyphen");
        }
        if host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("a host has no spaces");
        }
        Ok(SshUrl {
            host: host.replace(['[', ']'], ""),
            port,
            path,
        })
    }

    /// Returns the command that runs the other side. `program` is what connects, a line for a shell.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut remote = "tertulia sync-serve".to_owned();
        if let Some(path) = &self.path {
            remote.push_str(&format!(" --at {}", quoted(path)));
        }
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {program} \"$@\""), "ssh"]);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command
            .args(["--", &self.host, &remote])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }
}

fn in_home(path: &str) -> String {
    format!("~/{path}")
}

impl fmt::Display for SshUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ssh://{}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match self.path.as_deref() {
            Some(path) if path.starts_with('/') => f.write_str(path),
            Some(path) => write!(f, "/{path}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |text: &str| SshUrl::parse(text).map(|url| (url.host, url.port, url.path));
        let whole = |host: &str, port, path: Option<&str>| {
            Ok((host.to_owned(), port, path.map(str::to_owned)))
        };
        assert_eq!(read("desk"), whole("desk", None, None));
        assert_eq!(read("desk/"), whole("desk", None, None));
        let path = Some("/srv/t.db");
        assert_eq!(
            read("ada@desk:2222/srv/t.db"),
            whole("ada@desk", Some(2222), path)
        );
        assert_eq!(read("desk/~/t.db"), whole("desk", None, Some("~/t.db")));
        assert_eq!(read("[::1]:22"), whole("::1", Some(22), None));
        for wrong in [
            "",
            "/x",
            "-oProxyCommand=x",
            "a@-x",
            "desk:x",
            "a b",
            "@",
            "a:b@h",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_word_becomes_an_option_or_a_command() {
        let url = SshUrl::parse("desk:22/a b;'rm -rf'").unwrap();
        let command = url.command("ssh -C");
        let args: Vec<_> = command
            .get_args()
            .map(|arg| arg.to_string_lossy())
            .collect();
        assert_eq!(args[..5], ["-c", "exec ssh -C \"$@\"", "ssh", "-p", "22"]);
        let remote = r"tertulia sync-serve --at '/a b;'\''rm -rf'\'''";
        assert_eq!(args[5..], ["--", "desk", remote]);
    }
}
