//! The connection itself.

use std::io::{Read, Write};
use std::net::TcpStream;

use tertulia_testkit::provider::{Api, FakeProvider};

fn connect(provider: &FakeProvider) -> TcpStream {
    let url = provider.base_url(Api::Ollama);
    TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap()
}

/// Everything until the fake hangs up.
fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_request_may_come_in_chunks_and_another_after_it() {
    let provider = FakeProvider::start();
    let mut stream = connect(&provider);
    let body = r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}]}"#;
    let (one, two) = body.split_at(10);
    write!(
        stream,
        "POST /api/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len(),
    )
    .unwrap();
    let last =
        r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"[[fail:drop0]]"}]}"#;
    write!(
        stream,
        "POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{last}",
        last.len()
    )
    .unwrap();
    let answer = rest(stream);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains(r#""content":"echo #1: hi""#), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn what_is_not_there_is_not_found() {
    let provider = FakeProvider::start();
    for request in [
        "GET /api/nothing",
        "POST /api/nothing",
        "GET /v1beta/nothing",
        "POST /v1/nothing",
    ] {
        let mut stream = connect(&provider);
        write!(
            stream,
            "{request} HTTP/1.1\r\nx-goog-api-key: k\r\nauthorization: Bearer k\r\n\r\n"
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = rest(stream);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{request} {answer}");
    }
}

#[test]
fn idle_connections_end_with_it() {
    let provider = FakeProvider::start();
    let quiet = connect(&provider);
    drop(provider);
    assert_eq!(rest(quiet), "");
}
