//! What a path means. Everything that is not known here is nowhere: no path leads to a file.

use super::assets::VERSION;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Whether the server runs.
    Health,
    /// The page, whatever it shows.
    Page,
    /// The login.
    Login,
    /// The end of a login.
    Logout,
    /// A file of the page, under the version in its address.
    Asset(Option<&'a str>, &'a str),
    /// The WebSocket.
    Socket,
    /// Nothing.
    Unknown,
}

impl Route<'_> {
    /// Returns true if this method can be used.
    pub fn allows(self, method: &str) -> bool {
        match self {
            Route::Logout => method == "POST",
            Route::Login => ["GET", "HEAD", "POST"].contains(&method),
            Route::Socket => method == "GET",
            _ => ["GET", "HEAD"].contains(&method),
        }
    }
}

/// Returns what a path means.
pub fn route(path: &str) -> Route<'_> {
    match path {
        "/healthz" => Route::Health,
        "/" | "/new" | "/stats" => Route::Page,
        "/login" => Route::Login,
        "/logout" => Route::Logout,
        "/ws" => Route::Socket,
        "/manifest.webmanifest" | "/sw.js" => Route::Asset(None, &path[1..]),
        _ => match (path.strip_prefix("/assets/"), path.strip_prefix("/s/")) {
            (Some(name), _) if is_word(name) => Route::Asset(None, name),
            (Some(place), _) => match place.split_once('/') {
                Some((version, name)) if is_version(version) && is_word(name) => {
                    Route::Asset(Some(version), name)
                }
                _ => Route::Unknown,
            },
            (_, Some(place)) if is_place(place) => Route::Page,
            _ => Route::Unknown,
        },
    }
}

fn is_word(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(known)
}

fn is_version(text: &str) -> bool {
    text.len() == VERSION && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for `ID` and `ID/SEQ`.
fn is_place(text: &str) -> bool {
    let (id, seq) = match text.split_once('/') {
        Some((id, seq)) => (id, Some(seq)),
        None => (text, None),
    };
    let is_id =
        (4..=36).contains(&id.len()) && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_id
        && seq.is_none_or(|seq| {
            !seq.is_empty() && seq.len() <= 20 && seq.bytes().all(|b| b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_page_or_nowhere() {
        for path in [
            "/",
            "/new",
            "/stats",
            "/s/27b0bda3",
            "/s/01a1e32e-6f46-72f2-bd92-1e8027b0bda3/12",
        ] {
            assert_eq!(route(path), Route::Page, "{path}");
        }
        for path in [
            "",
            "/.",
            "/s/",
            "/s/../../etc/passwd",
            "/s/27b0bda3/",
            "/s/27b0bda3/x",
            "/s/27b0bda3/1/2",
            "/s/%2e%2e",
            "/assets/",
            "/assets/../web.json",
            "/assets/a/b",
            "/assets/0123456789abcdef/",
            "/assets/0123456789abcdef/../web.json",
            "/assets/%2e%2e%2fweb.json",
            "/assets/..\\web.json",
            "/login/",
            "//",
            "/index.html",
            "/acp",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
        assert_eq!(route("/assets/app.js"), Route::Asset(None, "app.js"));
        assert_eq!(route("/sw.js"), Route::Asset(None, "sw.js"));
        let version = "0123456789abcdef";
        let path = format!("/assets/{version}/app.js");
        assert_eq!(route(&path), Route::Asset(Some(version), "app.js"));
    }

    #[test]
    fn methods_are_few() {
        assert!(route("/login").allows("POST") && !route("/").allows("POST"));
        assert!(!route("/logout").allows("GET") && !route("/ws").allows("HEAD"));
        assert!(!route("/login").allows("PUT") && !route("/").allows("OPTIONS"));
    }
}
