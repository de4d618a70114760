//! A local server that plays scripted replies, one per request, byte for byte.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use serde_json::Value;

/// Reply to one request.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut: usize,
    after: After,
}

#[derive(Clone, Copy, PartialEq)]
enum After {
    /// The body ends properly.
    End,
    /// The connection breaks.
    Drop,
    /// Nothing more comes until the client disconnects.
    Hold,
}

impl Reply {
    /// A stream, in chunks so small that they split characters.
    pub fn stream(body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            body: body.into(),
            cut: 5,
            after: After::End,
        }
    }

    /// A response that is not a stream.
    pub fn plain(status: u16, body: &str) -> Reply {
        Reply {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            cut: usize::MAX,
            ..Reply::stream(body)
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Breaks the connection after the body.
    pub fn dropped(self) -> Reply {
        Reply {
            after: After::Drop,
            ..self
        }
    }

    /// Sends nothing after the body, not even its end.
    pub fn held(self) -> Reply {
        Reply {
            after: After::Hold,
            ..self
        }
    }

    fn play(&self, mut socket: TcpStream, gone: &mpsc::Sender<()>) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Played\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "transfer-encoding: chunked\r\n\r\n";
        socket.write_all(head.as_bytes())?;
        for piece in self.body.chunks(self.cut) {
            // The reader gets each HTTP chunk separately, whatever the packets are.
            write!(socket, "{:x}\r\n", piece.len())?;
            socket.write_all(piece)?;
            socket.write_all(b"\r\n")?;
        }
        socket.flush()?;
        match self.after {
            After::End => socket.write_all(b"0\r\n\r\n")?,
            After::Drop => {}
            After::Hold => {
                let _ = socket.read(&mut [0]);
                let _ = gone.send(());
            }
        }
        Ok(())
    }
}

/// A request as received.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub headers: String,
    pub body: Value,
}

/// The server. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    gone: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Plays the replies in order; further requests get an error.
    pub fn play(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (left, gone) = mpsc::channel();
        let (seen, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let mut replies = VecDeque::from(replies);
        let thread = thread::spawn(move || {
            for socket in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let socket = socket.unwrap();
                let Some(request) = read(&socket) else {
                    continue;
                };
                seen.lock().unwrap().push(request);
                let none = Reply::plain(418, r#"{"error": "no reply is left"}"#);
                let reply = replies.pop_front().unwrap_or(none);
                // The client may have disconnected.
                let _ = reply.play(socket, &left);
            }
        });
        Server {
            address,
            requests,
            stop,
            gone,
            thread: Some(thread),
        }
    }

    /// Address of the server, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until the client of a held reply has disconnected.
    pub fn wait_until_gone(&self) {
        self.gone
            .recv_timeout(tertulia_testkit::waiting::DEADLINE)
            .expect("nobody went away");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn read(socket: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(count) = header.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().ok()?;
        }
        headers += &header;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        line: line.trim().to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}
