//! Too much, too slow, too often: none of it stops the page, and none of it gets in.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::siege::besieged;
use super::stage::{Answer, Frame, WebServer, head};
use crate::home::{Home, until};

#[test]
fn a_large_body_is_refused_and_not_read() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    for path in ["/login", "/", "/ws"] {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 104857600\r\n\r\n");
        let answer = server.raw(&head);
        assert_eq!(answer.status, 413, "{path}");
    }
    // Without a length, it is refused when it has become too large.
    let mut stream = server.connect();
    let head =
        format!("POST /login HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut reader = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..1600 {
            if stream.write_all(chunk.as_bytes()).is_err() {
                return;
            }
        }
    });
    let answer = Answer::read(&mut reader);
    drop(reader);
    writer.join().unwrap();
    assert!([0, 413].contains(&answer.status), "{answer:?}");
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    assert!([0, 431, 400].contains(&server.raw(&long).status));
    assert_eq!(server.get("/healthz", "").status, 200);
    server.end().ok();
}

/// Returns true if the server has neither answered nor hung up.
fn is_waiting(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn slow_requests_are_given_up_and_delay_no_other() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    let told = home.run(&["web", "token", "create", "t", "--json"]).ok();
    let token = told.json()["token"].clone();
    // Where this takes so long that slow requests are given up before the login is answered, it says
    // nothing, and is tried again.
    until("a login is answered while slow requests wait", || {
        let mut slow: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
        for stream in &mut slow {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
        }
        // A login whose body never comes.
        let mut bodiless = server.connect();
        let head = format!("POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{");
        bodiless.write_all(head.as_bytes()).unwrap();
        let login = server.log_in_with(&json!({ "token": token })).login();
        assert_eq!(server.get("/", &login.cookie).status, 200);
        let are_waiting = slow.iter().chain([&bodiless]).all(is_waiting);
        for stream in slow {
            let answer = Answer::read(stream);
            assert!([0, 400, 408].contains(&answer.status), "{answer:?}");
        }
        assert_eq!(Answer::read(bodiless).status, 408);
        are_waiting.then_some(())
    });
    server.end().ok();
}

/// That none of them waits behind a wrong one is a test of the server library, where wrong ones wait
/// for ever; how long they take, `./bench serve` measures.
#[test]
fn a_right_login_is_answered_while_wrong_ones_keep_coming() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let mut codes = vec![server.code()];
    for _ in 0..3 {
        let told = home.run(&["web", "code", "--json"]).ok().json();
        let url = told["url"].as_str().unwrap();
        codes.push(url.split_once("#code=").unwrap().1.to_owned());
    }
    let told = home.run(&["web", "token", "create", "t", "--json"]).ok();
    let token = told.json()["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let host = server.host();
    let wrong = json!({ "code": "WRONG", "token": "wrong" }).to_string();
    let wrong = head("POST", "/login", &[("Host", &host)], &wrong);
    for address in ["127.0.0.1", "127.0.0.2"] {
        besieged(&server, address, &wrong, || {
            for login in [
                json!({ "code": codes.pop().unwrap() }),
                json!({ "token": token }),
                json!({ "code": codes.pop().unwrap() }),
            ] {
                let login = server.log_in_with(&login).login();
                assert_eq!(server.get("/", &login.cookie).status, 200);
            }
            let page = server.request("GET", "/", &[("Authorization", &bearer)], "");
            assert_eq!(page.status, 200);
        });
    }
    server.end().ok();
}

#[test]
fn connections_that_keep_asking_keep_nobody_out() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    besieged(&server, "127.0.0.1", &request, || {
        assert_eq!(server.get("/healthz", "").status, 200);
        let login = server.log_in();
        let mut socket = server.socket(&login);
        assert_eq!(socket.answer(json!({ "type": "ps" }))["type"], "ps_result");
    });
    server.end().ok();
}

#[test]
fn wrong_tokens_in_headers_are_slowed_down() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    let begun = Instant::now();
    for number in 0..6 {
        let token = format!("Authorization: Bearer guess{number}");
        let head =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n{token}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.raw(&head).status, 401);
    }
    // 50, 100, 200, 400 and 800 ms after the first, or more on a busy machine.
    assert!(begun.elapsed() > Duration::from_millis(1500));
    server.end().ok();
}

#[test]
fn requests_of_a_client_are_handled_at_a_rate() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    // Seconds are counted from the connection on.
    let begun = Instant::now();
    let mut socket = server.socket(&login);
    for _ in 0..450 {
        socket.ask(json!({ "type": "ps" }));
    }
    for _ in 0..450 {
        assert_eq!(socket.next()["type"], "ps_result");
    }
    assert!(begun.elapsed() > Duration::from_secs(2));
    server.end().ok();
}

#[test]
fn frames_that_are_too_long_or_no_text_end_the_connection() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let login = server.log_in();
    let mut socket = server.socket(&login);
    socket.send_frame(2, b"{}");
    assert_eq!(socket.until_closed(), Some(1003));
    let mut socket = server.socket(&login);
    socket.send_frame(1, "x".repeat(10_000_001).as_bytes());
    let code = socket.until_closed();
    assert!([Some(1009), None].contains(&code), "{code:?}");
    let mut socket = server.socket(&login);
    socket.send_frame(1, b"{\"type\":");
    let Frame::Text(error) = socket.frame() else {
        panic!("it hung up")
    };
    assert_eq!(error["kind"], "malformed");
    let unknown =
        json!({ "type": "session_page", "session_id": "01a1e32e-6f46-72f2-bd92-1e8027b0bda3" });
    let error = socket.answer(unknown);
    assert_eq!(
        (&error["type"], &error["kind"]),
        (&json!("error"), &json!("not_found"))
    );
    assert!(home.all().is_empty());
    server.end().ok();
}
