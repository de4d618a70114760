//! Too much, too slow, too often: none of it stops the page, and none of it gets in.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Answer, Frame, WebServer};
use crate::home::Home;

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
    let cookie = server.log_in();
    assert_eq!(server.get("/", &cookie).status, 200);
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

#[test]
fn a_thousand_wrong_codes_are_slowed_down_and_refused() {
    let home = Home::new();
    let server = WebServer::start(&home, &[]);
    let statuses = Mutex::new(Vec::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..40 {
            let (server, statuses) = (&server, &statuses);
            scope.spawn(move || {
                for number in 0..25 {
                    let login = json!({ "code": format!("{thread:010}{number:010}") });
                    let answer = server.log_in_with(&login);
                    if answer.status == 429 {
                        assert!(answer.header("retry-after").is_some());
                    }
                    statuses.lock().unwrap().push(answer.status);
                }
            });
        }
    });
    let statuses = statuses.into_inner().unwrap();
    assert_eq!(statuses.len(), 1000);
    let refused = |status: &&u16| [401, 429].contains(*status);
    assert_eq!(
        statuses.iter().filter(refused).count(),
        1000,
        "{statuses:?}"
    );
    let checked = statuses.iter().filter(|status| **status == 401).count();
    // At most 8 at once, and each waits for 3 s after some failures.
    let most = 8.0 * (begun.elapsed().as_secs_f64() / 3.0 + 1.0) + 60.0;
    assert!(
        (checked as f64) < most,
        "{checked} checked in {:?}",
        begun.elapsed()
    );
    // The right code still works.
    server.log_in();
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
    let cookie = server.log_in();
    let mut socket = server.socket(&cookie);
    let begun = Instant::now();
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
    let cookie = server.log_in();
    let mut socket = server.socket(&cookie);
    socket.send_frame(2, b"{}");
    assert_eq!(socket.until_closed(Duration::from_secs(10)), Some(1003));
    let mut socket = server.socket(&cookie);
    socket.send_frame(1, "x".repeat(10_000_001).as_bytes());
    let code = socket.until_closed(Duration::from_secs(10));
    assert!([Some(1009), None].contains(&code), "{code:?}");
    let mut socket = server.socket(&cookie);
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
