//! Misbehaving clients.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{Client, Server, both_ways, string};
use crate::home::{DEADLINE, Home, until};

#[test]
fn rubbish_is_answered_and_counted() {
    both_ways(|_, mut client| {
        let rubbish: [&[u8]; 6] = [
            b"rubbish\n",
            b"\xff\xfe\x00\n",
            b"[1,2]\n",
            b"{\"id\":5}\n",
            b"{\"type\":\"ps\"\n",
            b"\"\n",
        ];
        for line in rubbish {
            client.send_bytes(line);
            let answer = client.next();
            assert_eq!(
                (&answer["type"], &answer["kind"]),
                (&json!("error"), &json!("malformed"))
            );
        }
        // Empty lines are ignored.
        client.send_bytes(b"\n\r\n  \n");
        let shown = client.answer(json!({ "type": "ps" }));
        assert_eq!(shown["server"]["malformed"], 6);
    });
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    both_ways(|_, mut client| {
        let mut line = b"{\"type\":\"query\",\"query\":\"".to_vec();
        line.resize(11_000_000, b'x');
        client.send_bytes(&line);
        // The error is sent before the line ends.
        let answer = client.next();
        assert_eq!(answer["kind"], "too_large");
        client.send_bytes(b"\"}\n");
        assert_eq!(client.query("echo on").0, "on");
    });
}

#[test]
fn half_lines_wait_for_their_other_half() {
    both_ways(|_, mut client| {
        for part in ["{\"type\":", "\"ps\",", "\"id\":", "9", "}", "\n"] {
            client.send_bytes(part.as_bytes());
        }
        assert_eq!(client.of(9)["type"], "ps_result");
    });
}

#[test]
fn long_lines_of_many_do_not_fill_the_memory() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let half = vec![b'x'; 9_000_000];
    let mut many: Vec<Client> = (0..14).map(|_| server.client()).collect();
    for client in &mut many {
        client.send_bytes(&half);
    }
    until("some are passed over", || {
        let told = many
            .iter_mut()
            .filter_map(|client| client.next_within(Duration::from_millis(20)));
        let mut told = told.map(|(_, reply)| reply["kind"].clone());
        told.any(|kind| kind == "too_large").then_some(())
    });
    assert!(
        server.peak_memory() < 350_000_000,
        "{}",
        server.peak_memory()
    );
    many.into_iter().for_each(Client::leave);
    let mut client = server.client();
    let words = format!(
        "{{\"type\":\"query\",\"query\":\"{}\",\"id\":5}}\n",
        "x".repeat(9_000_000)
    );
    until("there is room again", || {
        client.send_bytes(words.as_bytes());
        let reply = client.next();
        // Rejected as too long for a prompt, but read.
        (reply["kind"] == "invalid" || reply["type"] != "error").then_some(())
    });
    server.end().ok();
}

/// Opens a connection that follows everything of a session and never reads.
fn deaf(server: &Server, session: &str) -> UnixStream {
    let mut stream = UnixStream::connect(&server.path).unwrap();
    let asked = json!({ "type": "subscribe", "session_id": session, "detail": "full" });
    stream.write_all(format!("{asked}\n").as_bytes()).unwrap();
    stream
}

#[test]
fn whoever_does_not_read_is_hung_up_on_and_slows_nobody() {
    let home = Home::new();
    let server = Server::start(&home, &["--queue", "500"]);
    let mut talks = server.client();
    let made = talks.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let mut deaf = deaf(&server, &session);
    let mut watch = server.client();
    let clients = |watch: &mut Client| {
        let shown = watch.answer(json!({ "type": "ps" }));
        shown["server"]["clients"].as_u64().unwrap()
    };
    assert_eq!(clients(&mut watch), 3);
    let words = "word ".repeat(10_000);
    until("it is given up", || {
        let (answer, _) = talks.query(&format!("echo {words}"));
        assert_eq!(answer.len(), words.trim_end().len());
        (clients(&mut watch) == 2).then_some(())
    });
    // Only the data already in the socket buffer can be read.
    deaf.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut rest = Vec::new();
    let end = deaf.read_to_end(&mut rest);
    let is_waiting = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!end.is_err_and(|error| is_waiting(&error)), "it stays");
    assert!(rest.len() < 2_000_000, "{}", rest.len());
    server.end().ok();
}

#[test]
fn whoever_reads_again_in_time_hears_why() {
    let home = Home::new();
    let server = Server::start(&home, &["--queue", "500"]);
    let mut talks = server.client();
    let made = talks.answer(json!({ "type": "session_create" }));
    let session = string(&made, "session_id");
    let mut deaf = deaf(&server, &session);
    let mut watch = server.client();
    let followers = |watch: &mut Client| {
        let shown = watch.answer(json!({ "type": "ps" }));
        shown["talks"][0]["followers"].as_u64().unwrap_or(0)
    };
    until("it follows", || (followers(&mut watch) == 1).then_some(()));
    let words = format!("echo {}", "word ".repeat(10_000));
    until("it is given up", || {
        talks.query(&words);
        (followers(&mut watch) == 0).then_some(())
    });
    let mut rest = String::new();
    deaf.read_to_string(&mut rest).unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], &last["kind"]),
        (&json!("error"), &json!("too_slow"))
    );
    server.end().ok();
}

#[test]
fn whoever_asks_without_reading_waits_and_loses_nothing() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut stream = UnixStream::connect(&server.path).unwrap();
    let mut other = stream.try_clone().unwrap();
    let count = 30_000;
    let asks = std::thread::spawn(move || {
        for n in 0..count {
            let line = format!("{{\"type\":\"ps\",\"id\":{n}}}\n");
            other.write_all(line.as_bytes()).unwrap();
        }
        other.shutdown(std::net::Shutdown::Write).unwrap();
    });
    // Other clients are served in the meantime.
    assert_eq!(server.client().query("echo here").0, "here");
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    asks.join().unwrap();
    let answers: Vec<&str> = all.lines().collect();
    assert_eq!(answers.len(), count);
    assert!(answers[count - 1].contains(&format!("\"id\":{}", count - 1)));
    server.end().ok();
}

#[test]
fn leaving_in_the_middle_of_anything_harms_nobody() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for n in 0..20 {
        let mut stream = UnixStream::connect(&server.path).unwrap();
        let line = match n % 4 {
            0 => "{\"type\":\"query\",\"query\":\"count to 200000\"}\n",
            1 => "{\"type\":\"query\",\"query\":\"half a li",
            2 => "",
            _ => "{\"type\":\"session_list\"}\n{\"type\":\"ps\"}\n",
        };
        stream.write_all(line.as_bytes()).unwrap();
    }
    let mut client = server.client();
    assert_eq!(client.query("echo here").0, "here");
    until("only this one is left", || {
        let shown = client.answer(json!({ "type": "ps" }));
        (shown["server"]["clients"] == 1).then_some(())
    });
    server.end().ok();
}

#[test]
fn too_many_clients_are_told_so() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut crowd: Vec<UnixStream> = Vec::new();
    let refused = until("no more fit", || {
        let mut stream = UnixStream::connect(&server.path).unwrap();
        // The server may close the connection before the client has sent anything, but still says
        // why.
        let _ = stream.write_all(b"{\"type\":\"ps\"}\n");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut line).unwrap();
        crowd.push(stream);
        line.contains("busy").then_some(line)
    });
    assert!(refused.contains("256"), "{refused}");
    crowd.clear();
    until("there is room again", || {
        // A client that is refused is told so before anything else.
        let mut client = server.client();
        client.try_send(&json!({ "type": "ps" }));
        (client.next()["type"] == "ps_result").then_some(())
    });
    server.end().ok();
}
