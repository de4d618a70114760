//! Who may see the page: every way in, and the right status for each that is none.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::stage::{Answer, Frame, WebServer, head};
use crate::home::Home;

#[test]
fn nothing_is_shown_without_a_login() {
    let home = Home::new();
    let id = home.say("echo a secret plan");
    let server = WebServer::start(&home, &[]);
    for path in [
        "/",
        "/new",
        "/stats",
        &format!("/s/{id}"),
        &format!("/s/{id}/2"),
    ] {
        for cookie in ["", "tertulia=", "tertulia=wrong", "other=1; tertulia=x"] {
            let answer = server.get(path, cookie);
            assert_eq!(answer.status, 401, "{path} {cookie}");
            assert!(!answer.body.contains("secret plan"));
        }
        let answer = server.request("GET", path, &[("Sec-Fetch-Mode", "navigate")], "");
        assert_eq!(answer.status, 303);
        assert_eq!(
            answer.header("location"),
            Some(&*format!("/login?next={path}"))
        );
    }
    for headers in [
        &[][..],
        &[("Cookie", "tertulia=wrong"), ("Origin", &*server.origin())],
        &[("Authorization", "Bearer wrong")],
        &[("Authorization", "Basic YTpi")],
    ] {
        let refused = server.upgrade(headers).err().unwrap();
        assert_eq!(refused.status, 401, "{headers:?}");
    }
    for (path, status) in [("/healthz", 200), ("/login", 200), ("/assets/app.js", 200)] {
        let answer = server.get(path, "");
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.body.contains("secret plan"));
    }
    server.end().ok();
}

#[test]
fn every_answer_has_the_headers_that_guard_it() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    for path in ["/", "/healthz", "/login", "/assets/app.js", "/none", "/ws"] {
        let answer = server.get(path, &login.cookie);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let kept = answer.header("cache-control").unwrap();
        let expected = match path.starts_with("/assets") {
            true => "no-cache",
            false => "no-store",
        };
        assert_eq!(kept, expected, "{path}");
    }
    let tag = server.get("/assets/app.js", "");
    let tag = tag.header("etag").unwrap();
    let again = server.request("GET", "/assets/app.js", &[("If-None-Match", tag)], "");
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    server.end().ok();
}

#[test]
fn files_are_kept_for_good_and_sent_compressed_and_a_wrong_link_leads_back() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let page = server.get("/", &login.cookie).body;
    let (_, rest) = page.split_once("src=\"/assets/").unwrap();
    let (name, _) = rest.split_once('"').unwrap();
    let path = format!("/assets/{name}");
    let kept = server.get(&path, "");
    let cache = kept.header("cache-control").unwrap();
    assert!(kept.status == 200 && cache.contains("immutable"), "{cache}");
    assert_eq!(kept.header("content-encoding"), None);
    let accepts = [("Accept-Encoding", "br, gzip")];
    let packed = server.request("GET", &path, &accepts, "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let length = |answer: &Answer| {
        answer
            .header("content-length")
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    assert!(length(&packed) * 2 < length(&kept));
    // A file of another version is not there, rather than wrong.
    let (_, file) = name.split_once('/').unwrap();
    assert_eq!(
        server
            .get(&format!("/assets/0123456789abcdef/{file}"), "")
            .status,
        404
    );

    let accepts = [("Accept", "text/html")];
    let missing = server.request("GET", "/nonsense", &accepts, "");
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("There is nothing here") && missing.body.contains("href=\"/\""));
    server.end().ok();
}

#[test]
fn a_code_works_once_and_a_login_ends() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = json!({ "code": server.code() });
    let first = server.log_in_with(&login);
    let set = first.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "{set}");
    let second = server.log_in_with(&login);
    assert_eq!(second.status, 401);
    assert!(second.body.contains("unauthorized") && second.header("set-cookie").is_none());
    let login = first.login();
    assert_eq!(server.get("/", &login.cookie).status, 200);
    // Another code, for another browser.
    let told = home.run(&["web", "code", "--json"]).ok().json();
    let code = told["url"]
        .as_str()
        .unwrap()
        .split_once("#code=")
        .unwrap()
        .1
        .to_lowercase();
    let other = server.log_in_with(&json!({ "code": code })).login();
    let origin = server.origin();
    let cookie = [("Cookie", login.cookie.as_str()), ("Origin", &origin)];
    let leave = |secret: &str| {
        let headers = [&cookie[..], &[("Tertulia-Secret", secret)]].concat();
        server.request("POST", "/logout", &headers, "")
    };
    // The cookie alone ends nothing either.
    assert_eq!(server.request("POST", "/logout", &cookie, "").status, 401);
    assert_eq!(leave(&other.secret).status, 401);
    let left = leave(&login.secret);
    assert_eq!(left.status, 204);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(server.get("/", &login.cookie).status, 401);
    let refused = server.upgrade(&cookie).err().unwrap();
    assert_eq!(refused.status, 401);
    server.end().ok();
}

/// Cookies do not know ports: a browser sends the cookie of a login to every other server on the same
/// machine, too.
#[test]
fn a_cookie_alone_opens_only_the_empty_page() {
    let home = Home::new();
    home.say("echo a secret plan");
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let code = home.run(&["web", "code", "--json"]).ok().json();
    let code = code["url"].as_str().unwrap().split_once("#code=").unwrap();
    let other = server.log_in_with(&json!({ "code": code.1 })).login();
    let page = server.get("/", &login.cookie);
    assert!(page.status == 200 && !page.body.contains("secret plan"));
    for first in [
        json!({ "type": "session_list" }),
        json!({ "type": "ps" }),
        json!({ "type": "authenticate" }),
        json!({ "type": "authenticate", "secret": "" }),
        json!({ "type": "authenticate", "secret": login.cookie.split_once('=').unwrap().1 }),
        json!({ "type": "authenticate", "secret": other.secret }),
        json!("no request"),
    ] {
        let mut socket = server.socket_by_cookie(&login.cookie);
        socket.send_frame(1, first.to_string().as_bytes());
        socket.send_frame(1, br#"{"type":"session_list","id":7}"#);
        let Frame::Text(error) = socket.frame() else {
            panic!("{first}: it hung up")
        };
        assert_eq!(error["kind"], "unauthorized", "{first}: {error}");
        assert_eq!(socket.frame(), Frame::Closed(Some(1008)), "{first}");
    }
    let mut socket = server.socket(&login);
    let list = socket.answer(json!({ "type": "session_list" }));
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    // A token is sent by the client itself: it needs nothing else.
    let again = socket.answer(json!({ "type": "authenticate", "secret": login.secret }));
    assert_eq!(again["kind"], "usage");
    server.end().ok();
}

#[test]
fn a_login_from_before_there_were_secrets_has_to_be_repeated() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let file = home.path().join(".local/share/tertulia/web.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    let grant = kept["grants"][0].as_object_mut().unwrap();
    assert!(grant.remove("secret").is_some(), "{text}");
    fs::write(&file, kept.to_string()).unwrap();
    for secret in [&login.secret, ""] {
        let mut socket = server.socket_by_cookie(&login.cookie);
        let answer = socket.answer(json!({ "type": "authenticate", "secret": secret }));
        assert_eq!(answer["kind"], "unauthorized", "{answer}");
    }
    server.end().ok();
}

#[test]
fn only_hashes_are_kept_in_a_private_file() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let code = server.code();
    let login = server.log_in();
    let made = home.run(&["web", "token", "create", "phone"]).ok();
    let file = home.path().join(".local/share/tertulia/web.json");
    let text = fs::read_to_string(&file).unwrap();
    let cookie = login.cookie.split_once('=').unwrap().1;
    for secret in [&code, cookie, &login.secret, made.stdout.trim()] {
        assert!(!text.contains(secret), "{text}");
    }
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.end().ok();
}

/// A page of another site can give its own name the address of this machine. Its requests then reach
/// the server, but with a wrong name.
#[test]
fn a_wrong_host_is_refused_everywhere() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let port = server.port;
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        "127.0.0.1:1".to_owned(),
        format!("localhost.evil.example:{port}"),
        String::new(),
    ] {
        for path in ["/", "/healthz", "/login", "/assets/app.js", "/ws"] {
            let headers = [("Host", host.as_str()), ("Cookie", &login.cookie)];
            let answer = server.raw(&head("GET", path, &headers, ""));
            assert_eq!(answer.status, 403, "{host} {path}");
        }
        let code = home.run(&["web", "code", "--json"]).ok().json();
        let code = code["url"]
            .as_str()
            .unwrap()
            .split_once("#code=")
            .unwrap()
            .1
            .to_owned();
        let login = json!({ "code": code }).to_string();
        let answer = server.raw(&head("POST", "/login", &[("Host", &host)], &login));
        assert_eq!(answer.status, 403);
        // The code was not used up.
        assert_eq!(server.log_in_with(&json!({ "code": code })).status, 200);
    }
    let (host, name) = (server.host(), format!("localhost:{port}"));
    let twice = head(
        "GET",
        "/healthz",
        &[("Host", &host), ("Host", "evil.example")],
        "",
    );
    assert_eq!(server.raw(&twice).status, 400);
    let twice = head("GET", "/healthz", &[("Host", &host), ("Host", &host)], "");
    assert_eq!(server.raw(&twice).status, 400);
    let absolute = format!(
        "GET http://evil.example/healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(server.raw(&absolute).status, 403);
    assert_eq!(
        server
            .raw(&head("GET", "/healthz", &[("Host", &name)], ""))
            .status,
        200
    );
    server.end().ok();
}

#[test]
fn a_wrong_origin_is_refused_and_nothing_is_done() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let evil = "https://evil.example";
    for headers in [
        &[("Cookie", login.cookie.as_str()), ("Origin", evil)][..],
        &[("Cookie", &login.cookie), ("Origin", "null")],
        &[("Cookie", &login.cookie)],
    ] {
        let refused = server.upgrade(headers).err().unwrap();
        assert_eq!(refused.status, 403, "{headers:?}");
        let left = server.request("POST", "/logout", headers, "");
        assert_eq!(left.status, 403, "{headers:?}");
        assert_eq!(server.get("/", &login.cookie).status, 200);
    }
    let code = home.run(&["web", "code", "--json"]).ok().json();
    let code = code["url"]
        .as_str()
        .unwrap()
        .split_once("#code=")
        .unwrap()
        .1
        .to_owned();
    let login = json!({ "code": code }).to_string();
    let answer = server.request("POST", "/login", &[("Origin", evil)], &login);
    assert_eq!(answer.status, 403);
    assert_eq!(server.log_in_with(&json!({ "code": code })).status, 200);
    server.end().ok();
}

#[test]
fn a_foreign_origin_is_refused_on_every_path() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let made = home.run(&["web", "token", "create", "t", "--json"]).ok();
    let bearer = format!("Bearer {}", made.json()["token"].as_str().unwrap());
    let (host, ours) = (server.host(), server.origin());
    let get = |path: &str, origins: &[&str]| {
        let mut headers = vec![("Host", host.as_str()), ("Authorization", &bearer)];
        headers.extend(origins.iter().map(|origin| ("Origin", *origin)));
        server.raw(&head("GET", path, &headers, ""))
    };
    let evil = "https://evil.example";
    for path in [
        "/",
        "/healthz",
        "/login",
        "/assets/app.js",
        "/sw.js",
        "/s/abcdef12",
        "/none",
        "/ws",
    ] {
        for origin in [evil, "null", "", "http://127.0.0.1:1"] {
            assert_eq!(get(path, &[origin]).status, 403, "{path} {origin}");
        }
        for origins in [[&*ours, evil], [evil, &ours], [&ours, &ours]] {
            assert_eq!(get(path, &origins).status, 400, "{path} {origins:?}");
        }
        assert!(![400, 403].contains(&get(path, &[]).status) || path == "/ws");
    }
    assert_eq!(get("/", &[&ours]).status, 200);
    server.end().ok();
}

/// Proxies and servers that end lines differently see different requests in the same bytes.
#[test]
fn lines_of_a_request_end_with_carriage_return_and_line_feed() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    for text in [
        format!("GET /healthz HTTP/1.1\nHost: {host}\nConnection: close\n\n"),
        format!("GET /healthz HTTP/1.1\nHost: {host}\r\nConnection: close\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\nConnection: close\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\n\r\n"),
        format!("\nGET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    ] {
        assert_eq!(server.raw(&text).status, 400, "{text:?}");
    }
    // The second request of a connection, too.
    let text = format!(
        "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\nGET /healthz HTTP/1.1\nHost: {host}\n\n"
    );
    let answer = server.raw(&text);
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("HTTP/1.1 400 "), "{answer:?}");
    // A body may have any bytes.
    let body = "{\n\"code\":\n\"x\"}\n";
    assert_eq!(server.request("POST", "/login", &[], body).status, 401);
    server.end().ok();
}

#[test]
fn no_path_leads_to_a_file() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    for path in [
        "/assets/../web.json",
        "/assets/..%2fweb.json",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/../../../../etc/passwd",
        "/assets//etc/passwd",
        "/s/../web.json",
        "/s/..",
        "/.git/config",
        "/assets/app.js/",
        "/assets/none.js",
        "/index.html",
        "/acp",
        "//healthz",
        "/assets/\\..\\web.json",
    ] {
        let answer = server.get(path, &login.cookie);
        assert!(
            [400, 404].contains(&answer.status),
            "{path}: {}",
            answer.status
        );
        assert!(!answer.body.contains("root:") && !answer.body.contains("hash"));
    }
    let origin = server.origin();
    let headers = [
        ("Cookie", login.cookie.as_str()),
        ("Tertulia-Secret", &login.secret),
        ("Origin", &origin),
    ];
    for (method, path) in [("POST", "/"), ("PUT", "/login"), ("DELETE", "/s/abcdef12")] {
        let answer = server.request(method, path, &headers, "");
        assert_eq!(answer.status, 405, "{method} {path}");
    }
    server.end().ok();
}
