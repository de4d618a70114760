//! Decides whether a request may be answered: by the name of the host that it asks for, by the page
//! that it comes from, and by what its client may do. A page of another site can make a browser send
//! requests here, and can give its own name the address of this machine; both have a wrong name.

use std::net::{IpAddr, SocketAddr};

use crate::client::Access;

/// The names under which the page is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether browsers reach it over TLS.
    pub is_secure: bool,
}

/// The address that a proxy or a forwarded port has for browsers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// `http` or `https`.
    pub scheme: String,
    /// Host with its port, if that is not the usual one.
    pub host: String,
}

impl PublicUrl {
    /// Parses a URL without path, such as `https://talk.example.org`.
    pub fn parse(url: &str) -> Option<PublicUrl> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let host = rest.strip_suffix('/').unwrap_or(rest).to_ascii_lowercase();
        let host = host.strip_suffix(usual).unwrap_or(&host).to_owned();
        let known = |c: char| c.is_ascii_alphanumeric() || "-.:[]_".contains(c);
        let fits = !host.is_empty() && host.chars().all(known);
        fits.then_some(PublicUrl { scheme, host })
    }

    /// Returns the URL without a slash at its end.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }
}

impl Site {
    /// Returns the names of a page that listens on `address`, over TLS or not.
    pub fn new(address: SocketAddr, tls: bool, public: Option<&PublicUrl>) -> Site {
        let port = address.port();
        let mut hosts = Vec::new();
        let ip = address.ip();
        if !ip.is_unspecified() {
            hosts.push(with_port(ip, port));
        }
        if ip.is_loopback() || ip.is_unspecified() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        let scheme = if tls { "https" } else { "http" };
        let mut origins: Vec<String> = hosts
            .iter()
            .map(|host| format!("{scheme}://{host}"))
            .collect();
        if let Some(public) = public {
            hosts.push(public.host.clone());
            origins.push(public.origin());
        }
        Site {
            hosts,
            origins,
            is_secure: tls || public.is_some_and(|public| public.scheme == "https"),
        }
    }

    /// Returns true if a request for this host is meant for the page.
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Returns true if a request comes from the page.
    pub fn has_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Returns the name of the cookie. A browser takes one with this prefix only over TLS.
    pub fn cookie(&self) -> &'static str {
        match self.is_secure {
            true => "__Host-tertulia",
            false => "tertulia",
        }
    }
}

fn with_port(ip: IpAddr, port: u16) -> String {
    SocketAddr::new(ip, port).to_string()
}

/// How a request authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By a cookie alone, which a browser sends also if another site makes it do so, and to every other
    /// server on the same host.
    Cookie(Access),
    /// By a cookie and the secret in the storage of the page, which no other origin can read.
    Login(Access),
    /// By a token in a header, which only the client itself can add.
    Bearer(Access),
    /// Not, or by one that is not known.
    None,
}

/// What a request is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It gets the page, which has no data in it.
    OpenPage,
    /// It opens the WebSocket, which takes the secret of a login in its first frame.
    Connect,
    /// It ends a login, which everybody may who has it.
    LogOut,
    /// It changes something.
    Change,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not authenticate.
    Unauthorized,
    /// It does not say which page it comes from, or comes from another one.
    WrongOrigin,
    /// Its client may only read.
    ReadOnly,
}

/// Decides about a request for anything but the login. It comes from the page itself or, without an
/// origin, from no page. Returns what its client may do.
pub fn decide(proof: Proof, action: Action, has_origin: bool) -> Result<Access, Refusal> {
    let matters = action != Action::OpenPage;
    let access = match proof {
        Proof::None => return Err(Refusal::Unauthorized),
        Proof::Cookie(_) | Proof::Login(_) if matters && !has_origin => {
            return Err(Refusal::WrongOrigin);
        }
        Proof::Cookie(_) if matters && action != Action::Connect => {
            return Err(Refusal::Unauthorized);
        }
        Proof::Cookie(access) | Proof::Login(access) | Proof::Bearer(access) => access,
    };
    match access {
        Access::ReadOnly if action == Action::Change => Err(Refusal::ReadOnly),
        access => Ok(access),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let public = PublicUrl::parse("https://Talk.example.org:443/").unwrap();
        Site::new("127.0.0.1:7417".parse().unwrap(), false, Some(&public))
    }

    #[test]
    fn only_known_hosts_are_served() {
        let site = site();
        for host in [
            "127.0.0.1:7417",
            "localhost:7417",
            "LocalHost:7417",
            "[::1]:7417",
            "talk.example.org",
        ] {
            assert!(site.has_host(host), "{host}");
        }
        for host in [
            "",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:80",
            "evil.example:7417",
            "talk.example.org.evil.example",
            "localhost:7417.evil.example",
            "0.0.0.0:7417",
            "127.0.0.1:7417@evil.example",
        ] {
            assert!(!site.has_host(host), "{host}");
        }
        let everywhere = Site::new("0.0.0.0:7417".parse().unwrap(), true, None);
        assert!(everywhere.has_host("localhost:7417") && !everywhere.has_host("10.0.0.1:7417"));
    }

    #[test]
    fn only_the_page_itself_is_an_origin() {
        let site = site();
        for origin in [
            "http://127.0.0.1:7417",
            "http://localhost:7417",
            "https://talk.example.org",
        ] {
            assert!(site.has_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://127.0.0.1:7417",
            "http://talk.example.org",
            "http://localhost:7418",
            "http://localhost:7417.evil.example",
        ] {
            assert!(!site.has_origin(origin), "{origin}");
        }
        assert!(site.is_secure && site.cookie().starts_with("__Host-"));
    }

    #[test]
    fn public_urls_have_no_path() {
        for url in [
            "talk.example.org",
            "ftp://x",
            "https://",
            "https://x/y",
            "https://x?y",
            "https://a@b",
            "https://x y",
        ] {
            assert_eq!(PublicUrl::parse(url), None, "{url}");
        }
        let url = PublicUrl::parse("http://localhost:9000").unwrap();
        assert_eq!(url.origin(), "http://localhost:9000");
    }

    #[test]
    fn a_request_needs_a_proof_and_the_right_page() {
        use Action::{Change, Connect, LogOut, OpenPage};
        let full = Access::Full;
        let (cookie, login, bearer) =
            (Proof::Cookie(full), Proof::Login(full), Proof::Bearer(full));
        let check = |proof, action, has_origin, expected: Result<Access, Refusal>| {
            let decided = decide(proof, action, has_origin);
            assert_eq!(decided, expected, "{proof:?} {action:?} {has_origin}");
        };
        for action in [OpenPage, Connect, LogOut, Change] {
            check(bearer, action, false, Ok(full));
            check(login, action, true, Ok(full));
            check(Proof::None, action, true, Err(Refusal::Unauthorized));
            if action != OpenPage {
                check(cookie, action, false, Err(Refusal::WrongOrigin));
                check(login, action, false, Err(Refusal::WrongOrigin));
            }
        }
        check(cookie, OpenPage, false, Ok(full));
        check(cookie, Connect, true, Ok(full));
        for action in [LogOut, Change] {
            check(cookie, action, true, Err(Refusal::Unauthorized));
        }
        let reader = Proof::Login(Access::ReadOnly);
        check(reader, Change, true, Err(Refusal::ReadOnly));
        for action in [OpenPage, Connect, LogOut] {
            check(reader, action, true, Ok(Access::ReadOnly));
        }
    }
}
