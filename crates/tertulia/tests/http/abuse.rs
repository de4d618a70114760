//! Too much, too slow, too often: none of it stops the page, and none of it gets in.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Answer, Frame, WebServer, head};
use crate::home::{Home, until};

/// Time within which an unfinished head of a request is given up.
const LORIS: Duration = Duration::from_secs(20);

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

#[test]
fn slow_requests_are_given_up_and_delay_no_other() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let begun = Instant::now();
    let mut slow: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    }
    // A login whose body never comes.
    let host = server.host();
    let mut waiting = server.connect();
    let head = format!("POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{");
    waiting.write_all(head.as_bytes()).unwrap();
    let login = server.log_in();
    assert_eq!(server.get("/", &login.cookie).status, 200);
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    for stream in slow {
        let answer = Answer::read(stream);
        assert!([0, 400, 408].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(Answer::read(waiting).status, 408);
    assert!(begun.elapsed() < LORIS, "{:?}", begun.elapsed());
    server.end().ok();
}

/// Number of clients that keep trying.
const ATTACKERS: usize = 300;
/// Pause of such a client between two requests: they need not use up the machine, too.
const PACE: Duration = Duration::from_millis(100);
/// Longest time for an answer, on a machine that is busy with the attackers, too.
const ANSWERED: Duration = Duration::from_secs(20);

/// Runs a check while many clients at an address do something again and again, each of them at least once.
fn besieged(server: &WebServer, address: &str, request: &str, check: impl FnOnce()) {
    let (is_over, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let attack = || {
        let mut has_begun = false;
        while !is_over.load(Ordering::Relaxed) {
            let Ok(mut stream) = server.try_connect_from(address) else {
                continue;
            };
            // The server may hang up at any time.
            if stream.write_all(request.as_bytes()).is_ok() && !has_begun {
                begun.fetch_add(1, Ordering::Relaxed);
                has_begun = true;
            }
            // After an answer it pauses, unless the server hangs up.
            stream.set_read_timeout(Some(PACE)).unwrap();
            let mut is_answered = false;
            while !is_over.load(Ordering::Relaxed) {
                match stream.read(&mut [0; 4096]) {
                    Ok(1..) => is_answered = true,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if is_answered && stream.write_all(request.as_bytes()).is_err() {
                            break;
                        }
                        is_answered = false;
                    }
                    _ => break,
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..ATTACKERS {
            scope.spawn(attack);
        }
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the attack has begun", || {
                (begun.load(Ordering::Relaxed) == ATTACKERS).then_some(())
            });
            check();
        }));
        is_over.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

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
            let begun = Instant::now();
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
            assert!(begun.elapsed() < ANSWERED, "{:?}", begun.elapsed());
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
        let begun = Instant::now();
        assert_eq!(server.get("/healthz", "").status, 200);
        let login = server.log_in();
        let mut socket = server.socket(&login);
        assert_eq!(socket.answer(json!({ "type": "ps" }))["type"], "ps_result");
        assert!(begun.elapsed() < ANSWERED, "{:?}", begun.elapsed());
    });
    server.end().ok();
}

#[test]
fn wrong_tokens_in_headers_are_slowed_down_and_old_cookies_are_not() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let host = server.host();
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(server.get("/", "tertulia=old").status, 401);
    }
    assert!(begun.elapsed() < Duration::from_secs(3));
    let begun = Instant::now();
    for number in 0..6 {
        let token = format!("Authorization: Bearer guess{number}");
        let head =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n{token}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.raw(&head).status, 401);
    }
    // 50, 100, 200, 400 and 800 ms after the first.
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
    assert_eq!(socket.until_closed(Duration::from_secs(10)), Some(1003));
    let mut socket = server.socket(&login);
    socket.send_frame(1, "x".repeat(10_000_001).as_bytes());
    let code = socket.until_closed(Duration::from_secs(10));
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
