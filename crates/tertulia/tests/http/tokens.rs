//! Tokens: full or read-only, for some time, and their end; addresses beyond this machine, and TLS.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tertulia_testkit::ports::unused_port;

use super::stage::{Answer, WebServer};
use crate::home::{Home, until};

fn token(home: &Home, args: &[&str]) -> String {
    let mut all = vec!["web", "token", "create", "--json"];
    all.extend(args);
    let made = home.run(&all).ok().json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_works_for_scripts_and_logins_until_it_is_revoked() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let secret = token(&home, &["phone", "--expires", "30d"]);
    let bearer = format!("Bearer {secret}");
    let authorized = [("Authorization", bearer.as_str())];
    assert_eq!(server.request("GET", "/", &authorized, "").status, 200);
    let mut script = server.upgrade(&authorized).ok().unwrap();
    assert_eq!(script.answer(json!({ "type": "ps" }))["type"], "ps_result");
    let login = server.log_in_with(&json!({ "token": secret })).login();
    let mut browser = server.socket(&login);
    let listed = home.run(&["web", "token", "list", "--json"]).ok().json();
    assert_eq!(listed["tokens"][0]["name"], "phone");
    assert_eq!(listed["logins"][0]["token"], "phone");
    home.run(&["web", "token", "create", "phone"]).code(4);
    home.run(&["web", "token", "revoke", "phone"]).ok();
    home.run(&["web", "token", "revoke", "phone"]).code(3);
    for socket in [&mut script, &mut browser] {
        assert_eq!(socket.until_closed(), Some(1008));
    }
    assert_eq!(server.request("GET", "/", &authorized, "").status, 401);
    assert_eq!(server.get("/", &login.cookie).status, 401);
    assert_eq!(server.log_in_with(&json!({ "token": secret })).status, 401);
    server.end().ok();
}

#[test]
fn a_read_only_token_reads_and_changes_nothing() {
    let home = Home::new();
    let id = home.say("echo one");
    let server = WebServer::start(&home, &[]);
    let secret = token(&home, &["wall", "--read-only"]);
    let bearer = format!("Bearer {secret}");
    let authorized = [("Authorization", bearer.as_str())];
    assert_eq!(server.request("GET", "/", &authorized, "").status, 200);
    for (method, path) in [
        ("POST", "/"),
        ("DELETE", "/s/abcd1234"),
        ("PUT", "/healthz"),
    ] {
        let answer = server.request(method, path, &authorized, "");
        assert_eq!(answer.status, 403, "{method} {path}");
    }
    let before = home.show(&id);
    let mut socket = server.upgrade(&authorized).ok().unwrap();
    let page = socket.answer(json!({ "type": "session_page", "session_id": id }));
    assert_eq!(page["entries"].as_array().unwrap().len(), 2);
    let follow = json!({ "type": "subscribe", "session_id": id, "detail": "full" });
    assert_eq!(socket.answer(follow)["type"], "subscribed");
    for ask in [
        json!({ "type": "say", "session_id": id, "text": "echo two" }),
        json!({ "type": "query", "query": "echo two" }),
        json!({ "type": "session_create", "title": "x" }),
        json!({ "type": "session_rename", "session_id": id, "title": "x" }),
        json!({ "type": "session_tag", "session_id": id, "add": ["x"] }),
        json!({ "type": "session_delete", "session_id": id }),
        json!({ "type": "session_fork", "session_id": id }),
        json!({ "type": "session_undo" }),
        json!({ "type": "session_configure", "session_id": id, "approve": "all" }),
        json!({ "type": "verdict", "session_id": id, "tool_id": "t", "verdict": "yes" }),
        json!({ "type": "stop", "session_id": id }),
        json!({ "type": "shutdown" }),
    ] {
        let answer = socket.answer(ask.clone());
        assert_eq!(answer["kind"], "forbidden", "{ask}");
    }
    // Following has not opened the session.
    let ps = socket.answer(json!({ "type": "ps" }));
    assert_eq!(ps["talks"], json!([]));
    assert_eq!(home.show(&id), before);
    assert_eq!(home.all().len(), 1);
    server.end().ok();
}

#[test]
fn a_token_that_has_expired_is_refused() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    // A busy machine may be too late for the first.
    let mut spans = [2, 8, 32].into_iter();
    let (secret, mut socket) = until("a token is used before it expires", || {
        let span = spans.next().unwrap();
        let name = format!("for{span}");
        let secret = token(&home, &[&name, "--expires", &format!("{span}s")]);
        let bearer = format!("Bearer {secret}");
        let socket = server.upgrade(&[("Authorization", &bearer)]).ok()?;
        Some((secret, socket))
    });
    let bearer = format!("Bearer {secret}");
    let authorized = [("Authorization", bearer.as_str())];
    assert_eq!(socket.until_closed(), Some(1008));
    assert_eq!(server.request("GET", "/", &authorized, "").status, 401);
    assert_eq!(server.log_in_with(&json!({ "token": secret })).status, 401);
    server.end().ok();
}

#[test]
fn other_machines_are_served_only_encrypted() {
    let home = Home::new();
    for args in [
        &["web", "--bind", "0.0.0.0:0"][..],
        &["web", "--bind", "[::]:0"],
        &["web", "--bind", "0.0.0.0:0", "--behind-proxy"],
        &["web", "--public-url", "talk.example.org"],
        &["serve", "--web", "--bind", "0.0.0.0:0"],
        &["serve", "--bind", "127.0.0.1:0"],
    ] {
        home.run(args).code(2);
    }
    let server = WebServer::start(
        &home,
        &["--behind-proxy", "--public-url", "https://talk.example.org"],
    );
    assert!(server.url.starts_with("https://talk.example.org/#code="));
    // Another one says so.
    let second = home.run(&["web", "--bind", "127.0.0.1:0"]);
    second.code(4);
    server.end().ok();
}

#[test]
fn a_proxy_is_reached_by_its_name_and_cookies_are_secure() {
    let home = Home::new();
    let port = unused_port();
    let bind = format!("127.0.0.1:{port}");
    let public = ["--behind-proxy", "--public-url", "https://talk.example.org"];
    let mut server = WebServer::start_on(&home, &bind, &public);
    server.port = port;
    let body = json!({ "code": server.code() }).to_string();
    let headers = [
        ("Host", "talk.example.org"),
        ("Origin", "https://talk.example.org"),
    ];
    let answer = server.raw(&super::stage::head("POST", "/login", &headers, &body));
    assert_eq!(answer.status, 200);
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.starts_with("__Host-tertulia=") && set.contains("; Secure"),
        "{set}"
    );
    server.end().ok();
}

/// Makes a certificate for `localhost` and its key, and returns their paths.
fn certificate(home: &Home) -> (String, String) {
    let path = |name: &str| home.path().join(name).display().to_string();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let made = std::process::Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=DNS:localhost", "-addext"])
        .args(["basicConstraints=critical,CA:FALSE", "-keyout", &key])
        .args(["-out", &certificate])
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");
    (certificate, key)
}

#[test]
fn the_page_is_served_over_tls() {
    let home = Home::new();
    let (certificate, key) = certificate(&home);
    home.run(&["web", "--tls-cert", &certificate]).code(2);
    home.run(&[
        "web",
        "--bind",
        "127.0.0.1:0",
        "--tls-cert",
        &key,
        "--tls-key",
        &key,
    ])
    .code(5);
    let server = WebServer::start(&home, &["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(server.url.starts_with("https://127.0.0.1:"));
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&certificate).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let request = |text: String| -> Answer {
        let name = ServerName::try_from("localhost").unwrap();
        let client = rustls::ClientConnection::new(Arc::new(config.clone()), name).unwrap();
        let mut stream = rustls::StreamOwned::new(client, server.connect());
        stream.write_all(text.as_bytes()).unwrap();
        Answer::read(&mut stream as &mut dyn Read)
    };
    let host = format!("localhost:{}", server.port);
    let origin = format!("https://{host}");
    let body = json!({ "code": server.code() }).to_string();
    let headers = [("Host", host.as_str()), ("Origin", &origin)];
    let answer = request(super::stage::head("POST", "/login", &headers, &body));
    assert_eq!(answer.status, 200);
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.starts_with("__Host-tertulia=") && set.contains("; Secure"),
        "{set}"
    );
    // Nothing is served in the clear.
    assert_eq!(server.get("/healthz", "").status, 0);
    server.end().ok();
}

#[test]
fn serve_web_in_the_background_prints_the_address() {
    let home = Home::new();
    let bind = format!("127.0.0.1:{}", unused_port());
    let told = home
        .run(&[
            "serve",
            "--detach",
            "--web",
            "--bind",
            &bind,
            "--idle-exit",
            "30",
        ])
        .ok();
    let url = told.stdout.lines().find(|line| line.contains("#code="));
    assert!(
        url.is_some_and(|url| url.contains(&bind)),
        "{}",
        told.stdout
    );
    until("it answers", || {
        std::net::TcpStream::connect(&bind).ok().map(drop)
    });
    let ps: Value = home.run(&["ps", "--json"]).ok().json();
    assert!(ps["server"]["pid"].as_u64().is_some(), "{ps}");
    home.run(&["stop", "--all"]).ok();
}
