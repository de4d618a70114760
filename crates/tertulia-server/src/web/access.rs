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
    /// By a cookie, which a browser sends also if another site makes it do so.
    Cookie(Access),
    /// By a token in a header, which only the client itself can add.
    Bearer(Access),
    /// Not, or by one that is not known.
    None,
}

/// What a request is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Whether its method is neither `GET` nor `HEAD`.
    pub changes: bool,
    /// Whether it asks for the WebSocket.
    pub upgrades: bool,
    /// The page that it comes from.
    pub origin: Option<&'a str>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not authenticate.
    Unauthorized,
    /// It comes from another page.
    WrongOrigin,
    /// Its client may only read.
    ReadOnly,
}

/// Decides about a request for anything but the login. Returns what its client may do.
pub fn decide(site: &Site, proof: Proof, asked: Asked<'_>) -> Result<Access, Refusal> {
    let matters = asked.changes || asked.upgrades;
    if matters && asked.origin.is_some_and(|origin| !site.has_origin(origin)) {
        return Err(Refusal::WrongOrigin);
    }
    let access = match proof {
        Proof::None => return Err(Refusal::Unauthorized),
        Proof::Cookie(_) if matters && asked.origin.is_none() => return Err(Refusal::WrongOrigin),
        Proof::Cookie(access) | Proof::Bearer(access) => access,
    };
    match access {
        Access::ReadOnly if asked.changes => Err(Refusal::ReadOnly),
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
        let site = site();
        let ours = Some("http://localhost:7417");
        let asked = |changes, upgrades, origin| Asked {
            changes,
            upgrades,
            origin,
        };
        let full = Access::Full;
        let (cookie, bearer) = (Proof::Cookie(full), Proof::Bearer(full));
        let check = |proof, asked, expected: Result<Access, Refusal>| {
            assert_eq!(decide(&site, proof, asked), expected, "{proof:?} {asked:?}");
        };
        check(cookie, asked(false, false, None), Ok(full));
        check(
            Proof::None,
            asked(false, false, None),
            Err(Refusal::Unauthorized),
        );
        check(
            Proof::None,
            asked(false, true, ours),
            Err(Refusal::Unauthorized),
        );
        for (changes, upgrades) in [(true, false), (false, true)] {
            let evil = Some("https://evil.example");
            check(cookie, asked(changes, upgrades, ours), Ok(full));
            check(bearer, asked(changes, upgrades, None), Ok(full));
            for proof in [cookie, bearer, Proof::None] {
                let wrong = asked(changes, upgrades, evil);
                check(proof, wrong, Err(Refusal::WrongOrigin));
            }
            let missing = asked(changes, upgrades, None);
            check(cookie, missing, Err(Refusal::WrongOrigin));
        }
        let reader = Proof::Cookie(Access::ReadOnly);
        check(reader, asked(true, false, ours), Err(Refusal::ReadOnly));
        check(reader, asked(false, true, ours), Ok(Access::ReadOnly));
    }
}
