//! Programs between a client and a PostgreSQL server: one that cuts connections at the worst moment, and
//! a pooler in transaction mode.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// A message of the protocol: its type, and its bytes with type and length.
struct Message {
    kind: u8,
    bytes: Vec<u8>,
}

/// Reads one message; the first of a client has no type.
fn read_message(stream: &mut impl Read, is_first: bool) -> io::Result<Message> {
    let mut head = vec![0; if is_first { 4 } else { 5 }];
    stream.read_exact(&mut head)?;
    let mut length = [0; 4];
    length.copy_from_slice(&head[head.len() - 4..]);
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    stream.read_exact(&mut body)?;
    let kind = if is_first { 0 } else { head[0] };
    head.extend(body);
    Ok(Message { kind, bytes: head })
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server gets everything but the commit.
    BeforeCommit,
    /// The server commits, and the client does not hear of it.
    AfterCommit,
}

#[derive(Debug, Default)]
struct Control {
    armed: Mutex<Option<Cut>>,
    /// Both ends of each connection that may still be open.
    open: Mutex<Vec<[TcpStream; 2]>>,
    cuts: AtomicUsize,
    is_silent: Mutex<bool>,
    /// Signalled when the silence ends.
    speaks: Condvar,
    is_closed: AtomicBool,
    /// Commits before the proxy closes.
    commits_left: Mutex<Option<usize>>,
}

impl Control {
    /// Counts a commit; closes the proxy in its place if so many were let through.
    fn count_commit(&self) {
        let mut left = self.commits_left.lock().unwrap();
        match &mut *left {
            Some(0) => {
                *left = None;
                self.is_closed.store(true, Ordering::SeqCst);
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// A proxy that cuts connections on request. It is for one test: its threads end with the process.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    control: Arc<Control>,
}

impl Proxy {
    /// Starts a proxy in front of a server at a port of this machine.
    pub fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let control = Arc::new(Control::default());
        let theirs = control.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let control = theirs.clone();
                if control.is_closed() {
                    end(&[&client]);
                } else if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    pass(client, server, &control);
                }
            }
        });
        Proxy { port, control }
    }

    /// Returns a URL of the server with the proxy in its place.
    pub fn url(&self, of_server: &str) -> String {
        let (before, rest) = of_server.split_once("@127.0.0.1:").unwrap();
        let (_, after) = rest.split_once('/').unwrap();
        format!("{before}@127.0.0.1:{}/{after}", self.port)
    }

    /// Cuts the next connection that commits.
    pub fn arm(&self, cut: Cut) {
        *self.control.armed.lock().unwrap() = Some(cut);
    }

    /// Cuts one of the open connections, whatever passes through it now. Returns false if there is
    /// none.
    pub fn cut_one(&self, number: usize) -> bool {
        let mut open = self.control.open.lock().unwrap();
        if open.is_empty() {
            return false;
        }
        let place = number % open.len();
        let [client, server] = open.swap_remove(place);
        end(&[&client, &server]);
        self.control.cuts.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Returns the number of connections that were cut.
    pub fn cuts(&self) -> usize {
        self.control.cuts.load(Ordering::SeqCst)
    }

    /// Refuses connections and ends those that there are, as if there were no server; or serves
    /// again.
    pub fn close(&self, is_closed: bool) {
        self.control.is_closed.store(is_closed, Ordering::SeqCst);
    }

    /// Closes the proxy in place of a commit, after so many others.
    pub fn close_after(&self, commits: usize) {
        *self.control.commits_left.lock().unwrap() = Some(commits);
    }

    /// Lets nothing through, or everything again. Connections stay open.
    pub fn silence(&self, is_silent: bool) {
        *self.control.is_silent.lock().unwrap() = is_silent;
        self.control.speaks.notify_all();
    }
}

/// Passes the bytes of one connection in both directions.
fn pass(client: TcpStream, server: TcpStream, control: &Arc<Control>) {
    at_once(&client);
    at_once(&server);
    let is_cut = Arc::new(AtomicBool::new(false));
    let mut open = control.open.lock().unwrap();
    // Of those that ended, the other side is no longer known.
    open.retain(|[client, _]| client.peer_addr().is_ok());
    open.push([client.try_clone().unwrap(), server.try_clone().unwrap()]);
    drop(open);
    let answers = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let (theirs, cut) = (control.clone(), is_cut.clone());
    thread::spawn(move || {
        let (mut server, mut client) = answers;
        // After the commit the server is ready; a statement of its own commits before that, too.
        while let Ok(message) = read_message(&mut server, false) {
            wait_while_silent(&theirs);
            if message.kind == b'Z' && cut.load(Ordering::SeqCst) {
                break;
            }
            if client.write_all(&message.bytes).is_err() {
                break;
            }
        }
        end(&[&server, &client]);
    });
    let control = control.clone();
    thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let (mut is_first, mut in_transaction) = (true, false);
        while let Ok(message) = read_message(&mut client, is_first) {
            is_first = false;
            wait_while_silent(&control);
            let is_query = message.kind == b'Q';
            in_transaction |= is_query && holds(&message.bytes, b"BEGIN");
            in_transaction &= !(is_query && holds(&message.bytes, b"ROLLBACK"));
            // An append is often a transaction of one statement.
            let is_append = is_query && holds(&message.bytes, b"EXECUTE tertulia_append");
            let is_commit = match in_transaction {
                true => is_query && holds(&message.bytes, b"COMMIT"),
                false => is_append,
            };
            in_transaction &= !is_commit;
            if is_commit {
                control.count_commit();
            }
            if control.is_closed() {
                break;
            }
            let armed = match is_commit {
                true => control.armed.lock().unwrap().take(),
                false => None,
            };
            if armed.is_some() {
                control.cuts.fetch_add(1, Ordering::SeqCst);
            }
            match armed {
                Some(Cut::BeforeCommit) => break,
                Some(Cut::AfterCommit) => is_cut.store(true, Ordering::SeqCst),
                None => {}
            }
            if server.write_all(&message.bytes).is_err() {
                break;
            }
            // The other direction ends the connection when the server has committed.
        }
        end(&[&server, &client]);
    });
}

/// Sends small messages without waiting for more.
fn at_once(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
}

fn wait_while_silent(control: &Control) {
    let silent = control.is_silent.lock().unwrap();
    let spoken = control.speaks.wait_while(silent, |silent| *silent);
    drop(spoken.unwrap());
}

fn end(streams: &[&TcpStream]) {
    for stream in streams {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// A pooler in transaction mode: each transaction of a client may get another connection to the
/// server.
#[derive(Debug)]
pub struct Pooler {
    /// Port of the pooler.
    pub port: u16,
    transactions: Arc<AtomicUsize>,
}

impl Pooler {
    /// Starts a pooler with so many connections to a server that trusts the role `postgres`, in a
    /// schema.
    pub fn start(server: u16, schema: &str, connections: usize) -> Pooler {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let free: Vec<TcpStream> = (0..connections)
            .map(|_| connected(server, schema))
            .collect();
        let free = Arc::new(FreeConnections {
            connections: Mutex::new(free.into()),
            returned: Condvar::new(),
        });
        let transactions = Arc::new(AtomicUsize::new(0));
        let counted = transactions.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (free, counted) = (free.clone(), counted.clone());
                thread::spawn(move || serve(client, &free, &counted));
            }
        });
        Pooler { port, transactions }
    }

    /// Returns the number of transactions so far.
    pub fn transactions(&self) -> usize {
        self.transactions.load(Ordering::SeqCst)
    }
}

/// Connections of a pooler that serve no transaction.
#[derive(Debug)]
struct FreeConnections {
    connections: Mutex<VecDeque<TcpStream>>,
    returned: Condvar,
}

impl FreeConnections {
    /// Waits for a connection.
    fn take(&self) -> TcpStream {
        let mut connections = self.connections.lock().unwrap();
        loop {
            if let Some(connection) = connections.pop_front() {
                return connection;
            }
            connections = self.returned.wait(connections).unwrap();
        }
    }

    fn give_back(&self, connection: TcpStream) {
        self.connections.lock().unwrap().push_back(connection);
        self.returned.notify_one();
    }
}

/// Connects to the server as a pooler does, and waits until it is ready.
fn connected(server: u16, schema: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server)).unwrap();
    at_once(&stream);
    let mut settings = Vec::new();
    let options = format!("-csearch_path={schema}");
    let pairs = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("client_encoding", "UTF8"),
        ("options", &options),
    ];
    for (name, value) in pairs {
        settings.extend_from_slice(name.as_bytes());
        settings.push(0);
        settings.extend_from_slice(value.as_bytes());
        settings.push(0);
    }
    settings.push(0);
    let length = u32::try_from(settings.len() + 8).unwrap();
    let mut startup = length.to_be_bytes().to_vec();
    startup.extend(196_608_u32.to_be_bytes());
    startup.extend(settings);
    stream.write_all(&startup).unwrap();
    while read_message(&mut stream, false).unwrap().kind != b'Z' {}
    stream
}

fn serve(mut client: TcpStream, free: &FreeConnections, transactions: &AtomicUsize) {
    at_once(&client);
    let Ok(_startup) = read_message(&mut client, true) else {
        return;
    };
    // Authentication succeeded, and ready outside of a transaction.
    let welcome = [b"R\0\0\0\x08\0\0\0\0".to_vec(), b"Z\0\0\0\x05I".to_vec()].concat();
    if client.write_all(&welcome).is_err() {
        return;
    }
    let mut used: Option<TcpStream> = None;
    let mut unit = Vec::new();
    while let Ok(message) = read_message(&mut client, false) {
        if message.kind == b'X' {
            break;
        }
        unit.extend(message.bytes);
        // A simple query, or the end of an extended one: the server answers until it is ready.
        if !matches!(message.kind, b'Q' | b'S') {
            continue;
        }
        let mut server = match used.take() {
            Some(server) => server,
            None => {
                transactions.fetch_add(1, Ordering::SeqCst);
                free.take()
            }
        };
        server.write_all(&unit).unwrap();
        unit.clear();
        loop {
            let answer = read_message(&mut server, false).unwrap();
            let _ = client.write_all(&answer.bytes);
            if answer.kind == b'Z' {
                match answer.bytes.last() {
                    Some(b'I') => free.give_back(server),
                    _ => used = Some(server),
                }
                break;
            }
        }
    }
    // A client that went away in mid-transaction.
    if let Some(mut server) = used {
        server.write_all(b"Q\0\0\0\x0dROLLBACK\0").unwrap();
        while read_message(&mut server, false).unwrap().kind != b'Z' {}
        free.give_back(server);
    }
}
