//! Test fixture: a running web server, requests byte for byte, and a WebSocket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{DEADLINE, Home, Output, finish};
use crate::serve::stage::{Client, REPLY};

/// Connects clients from addresses of their own, which the standard library cannot do.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .build()
        .unwrap()
});

/// A running web server.
pub struct WebServer {
    child: Option<Child>,
    pub port: u16,
    /// The printed address.
    pub url: String,
    pub socket: String,
}

impl WebServer {
    /// Starts a server on a free port and waits until it listens.
    pub fn start(home: &Home, more: &[&str]) -> WebServer {
        WebServer::start_on(home, "127.0.0.1:0", more)
    }

    /// Starts a server on an address.
    pub fn start_on(home: &Home, bind: &str, more: &[&str]) -> WebServer {
        let mut args = vec!["web", "--json", "--bind", bind];
        args.extend(more);
        let mut child = home
            .prepare(&args)
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.trim_end().ends_with('}') {
            assert!(lines.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        }
        let told: Value = serde_json::from_str(&text).unwrap();
        let url = told["url"].as_str().unwrap().to_owned();
        let (origin, _) = url.split_once("/#").unwrap();
        let port = origin.rsplit(':').next().unwrap().parse().unwrap_or(0);
        WebServer {
            child: Some(child),
            port,
            url,
            socket: told["socket"].as_str().unwrap().to_owned(),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends the server.
    pub fn end(mut self) -> Output {
        kill_process(self.pid(), Signal::TERM).unwrap();
        finish(self.child.take().unwrap(), "a web server")
    }

    /// Returns the code in the printed address.
    pub fn code(&self) -> String {
        self.url.split_once("#code=").unwrap().1.to_owned()
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.host())
    }

    /// Logs in with the printed code.
    pub fn log_in(&self) -> Login {
        self.log_in_with(&json!({ "code": self.code() })).login()
    }

    pub fn log_in_with(&self, login: &Value) -> Answer {
        let origin = self.origin();
        self.request("POST", "/login", &[("Origin", &origin)], &login.to_string())
    }

    /// Sends a request with the right host.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let host = self.host();
        let mut all = vec![("Host", host.as_str())];
        all.extend(headers);
        self.raw(&head(method, path, &all, body))
    }

    /// Gets a path as the holder of a cookie.
    pub fn get(&self, path: &str, cookie: &str) -> Answer {
        self.request("GET", path, &[("Cookie", cookie)], "")
    }

    /// Sends bytes, and returns what comes back until the connection is closed.
    pub fn raw(&self, bytes: &str) -> Answer {
        let mut stream = self.connect();
        // The server may answer and hang up before it has read everything.
        let _ = stream.write_all(bytes.as_bytes());
        Answer::read(stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Connects from an address of this machine.
    pub fn try_connect_from(&self, address: &str) -> std::io::Result<TcpStream> {
        let stream = RUNTIME.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind((address.parse::<std::net::Ipv4Addr>().unwrap(), 0).into())?;
            socket.connect(([127, 0, 0, 1], self.port).into()).await
        })?;
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(stream)
    }

    /// Opens a WebSocket as the page does after a login.
    pub fn socket(&self, login: &Login) -> WebSocket {
        let mut socket = self.socket_by_cookie(&login.cookie);
        let authenticate = json!({ "type": "authenticate", "secret": login.secret });
        assert_eq!(socket.answer(authenticate)["type"], "authenticated");
        socket
    }

    /// Opens a WebSocket as a program does that has the cookie of a login and nothing else.
    pub fn socket_by_cookie(&self, cookie: &str) -> WebSocket {
        let origin = self.origin();
        let opened = self.upgrade(&[("Cookie", cookie), ("Origin", &origin)]);
        opened.unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// Opens a WebSocket with these headers.
    pub fn upgrade(&self, headers: &[(&str, &str)]) -> Result<WebSocket, Answer> {
        let host = self.host();
        let mut all = vec![
            ("Host", host.as_str()),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        all.extend(headers);
        let mut stream = self.connect();
        let text = head("GET", "/ws", &all, "").replace("Connection: close\r\n", "");
        stream.write_all(text.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        if !first.contains(" 101 ") {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = first.into_bytes();
            reader.read_to_end(&mut rest).unwrap();
            return Err(Answer::parse(&rest));
        }
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Ok(WebSocket {
            stream,
            reader,
            heard: Vec::new(),
            ids: 0,
        })
    }

    /// Connects a client on the Unix socket.
    pub fn near(&self) -> Client {
        Client::over_socket(self.socket.as_ref())
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a request. The connection ends with it.
pub fn head(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}")
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// Reads an answer until the connection is closed, in whatever way.
    pub fn read(mut stream: impl Read) -> Answer {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match stream.read(&mut chunk) {
                Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("it stays open"),
                _ => break,
            }
        }
        Answer::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let headers = lines.filter_map(|line| line.split_once(": "));
        Answer {
            status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
            body: body.to_owned(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns the login that it is about.
    #[track_caller]
    pub fn login(&self) -> Login {
        assert_eq!(self.status, 200, "{self:?}");
        let set = self.header("set-cookie").unwrap();
        let body: Value = serde_json::from_str(&self.body).unwrap();
        Login {
            cookie: set.split(';').next().unwrap().to_owned(),
            secret: body["secret"].as_str().unwrap().to_owned(),
        }
    }
}

/// What a browser has after a login.
#[derive(Clone, Debug)]
pub struct Login {
    /// The cookie, as the browser sends it back.
    pub cookie: String,
    /// The secret in the storage of the page.
    pub secret: String,
}

/// A WebSocket.
pub struct WebSocket {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    /// Replies received while waiting for another one.
    heard: Vec<Value>,
    ids: i64,
}

/// What comes over a WebSocket.
#[derive(Debug, PartialEq)]
pub enum Frame {
    Text(Value),
    /// A close frame with its code, or the end of the connection.
    Closed(Option<u16>),
}

impl WebSocket {
    /// Sends a frame with a mask of zeros, which leaves its bytes as they are.
    pub fn send_frame(&mut self, opcode: u8, payload: &[u8]) {
        let mut bytes = vec![0x80 | opcode];
        match payload.len() {
            short @ 0..126 => bytes.push(0x80 | u8::try_from(short).unwrap()),
            long => {
                bytes.push(0x80 | 127);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(payload);
        // The server may hang up before it has read a frame that is too long.
        let _ = self.stream.write_all(&bytes);
    }

    /// Sends a request. Returns its id.
    pub fn ask(&mut self, mut request: Value) -> i64 {
        self.ids += 1;
        request["id"] = self.ids.into();
        self.send_frame(1, request.to_string().as_bytes());
        self.ids
    }

    pub fn frame(&mut self) -> Frame {
        let mut head = [0; 2];
        match self.reader.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing comes"),
            Err(_) => return Frame::Closed(None),
        }
        let length = match head[1] & 127 {
            126 => {
                let mut bytes = [0; 2];
                self.reader.read_exact(&mut bytes).unwrap();
                u64::from(u16::from_be_bytes(bytes))
            }
            127 => {
                let mut bytes = [0; 8];
                self.reader.read_exact(&mut bytes).unwrap();
                u64::from_be_bytes(bytes)
            }
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.reader.read_exact(&mut payload).unwrap();
        match head[0] & 15 {
            1 => Frame::Text(serde_json::from_slice(&payload).unwrap()),
            8 => {
                let code = payload.first_chunk().copied();
                Frame::Closed(code.map(u16::from_be_bytes))
            }
            // A ping.
            _ => self.frame(),
        }
    }

    /// Returns the next reply, checked against the schema.
    pub fn next(&mut self) -> Value {
        match self.frame() {
            Frame::Text(reply) => {
                assert!(REPLY.is_valid(&reply), "{reply}");
                reply
            }
            closed => panic!("{closed:?}"),
        }
    }

    /// Sends a request and returns the first reply to it.
    pub fn answer(&mut self, request: Value) -> Value {
        let id = self.ask(request);
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < DEADLINE, "no answer");
            let reply = self.next();
            if reply["id"] == id && reply["type"] != "happening" {
                return reply;
            }
            self.heard.push(reply);
        }
    }

    /// Reads until an event, and returns it.
    pub fn until(&mut self, what: &str) -> Value {
        let is_it = |reply: &Value| reply["happening"]["what"] == what;
        if let Some(place) = self.heard.iter().position(is_it) {
            let reply = self.heard.remove(place);
            self.heard.drain(..place);
            return reply["happening"].clone();
        }
        self.heard.clear();
        loop {
            let reply = self.next();
            if is_it(&reply) {
                return reply["happening"].clone();
            }
        }
    }

    /// Waits for the end. Returns the code that it has.
    pub fn until_closed(&mut self) -> Option<u16> {
        loop {
            match self.frame() {
                Frame::Closed(code) => return code,
                Frame::Text(_) => {}
            }
        }
    }
}
