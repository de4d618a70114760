//! The web page under attack, with limits and delays of the test's own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_server::host::{HostResult, StoreChanges};
use tertulia_server::web::Web;
use tertulia_server::web::access::Site;
use tertulia_server::web::assets::Files;
use tertulia_server::web::authenticator::{Authenticator, CredentialStore};
use tertulia_server::web::credentials::Credentials;
use tertulia_server::web::listen;
use tertulia_server::web::places::PlaceLimits;
use tertulia_server::web::throttle::Delays;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::task::TaskTracker;

/// Credentials in memory.
#[derive(Default)]
struct Memory {
    credentials: Mutex<Credentials>,
    random: AtomicU8,
}

impl CredentialStore for Memory {
    fn read(&self) -> HostResult<Credentials> {
        Ok(self.credentials.lock().unwrap().clone())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Credentials)) -> HostResult<()> {
        change(&mut self.credentials.lock().unwrap());
        Ok(())
    }

    fn random(&self) -> HostResult<[u8; 32]> {
        Ok([self.random.fetch_add(1, Ordering::Relaxed); 32])
    }

    fn changes(&self) -> Option<StoreChanges> {
        None
    }
}

/// Starts a page with one valid code and one valid token. Returns its address.
async fn start(folder: &std::path::Path, places: PlaceLimits, delays: Delays) -> SocketAddr {
    let (hub, _) = crate::live::server(folder, false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let memory = Memory::default();
    memory
        .update(&mut |credentials| {
            let now = Timestamp::now();
            credentials.add_code("ABCDE12345", false, now);
            credentials.add_token("t", "right", false, (now, None));
        })
        .unwrap();
    let web = Web {
        hub,
        site: Site::new(address, false, None),
        authenticator: Authenticator::new(Arc::new(memory), delays),
        clients: TaskTracker::new(),
        places,
        files: Files::new().unwrap(),
    };
    tokio::spawn(listen::listen(Arc::new(web), listener, None));
    address
}

/// Sends a login from an address of this machine. Returns its status, or 0 if the server hangs up.
async fn log_in(server: SocketAddr, from: [u8; 4], login: Value) -> u16 {
    let body = login.to_string();
    let request = format!(
        "POST /login HTTP/1.1\r\nHost: {server}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    send(server, from, &request).await
}

/// Sends bytes from an address of this machine. Returns the status of the answer, or 0 if the server
/// hangs up.
async fn send(server: SocketAddr, from: [u8; 4], request: &str) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let Ok(mut stream) = socket.connect(server).await else {
        return 0;
    };
    let mut answer = Vec::new();
    let _ = stream.write_all(request.as_bytes()).await;
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let status = answer.split(' ').nth(1);
    status.map_or(0, |status| status.parse().unwrap())
}

/// Time after which a request that must not wait hangs, on any machine.
const HANGING: Duration = Duration::from_secs(120);

/// Delays that keep a client that is wrong twice waiting for the whole test.
const FOR_EVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_thousand_wrong_codes_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let delays = Delays {
        longest: Duration::from_millis(1),
        ..Delays::default()
    };
    let server = start(home.path(), PlaceLimits::default(), delays).await;
    let clients = (0..40).map(|client| {
        tokio::spawn(async move {
            for number in 0..25 {
                let login = json!({ "code": format!("{client:010}{number:010}") });
                assert_eq!(log_in(server, [127, 0, 0, 1], login).await, 401);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let near = [127, 0, 0, 1];
    let login = json!({ "code": "ABCDE12345" });
    assert_eq!(log_in(server, near, login.clone()).await, 200);
    assert_eq!(log_in(server, near, login).await, 401);
    assert_eq!(log_in(server, near, json!({ "token": "right" })).await, 200);
}

#[tokio::test]
async fn wrong_logins_wait_and_make_room_for_others() {
    let home = tempfile::tempdir().unwrap();
    let places = PlaceLimits {
        unknown: 4,
        known: 4,
    };
    let delays = Delays {
        first: FOR_EVER,
        longest: FOR_EVER,
        ..Delays::default()
    };
    let server = start(home.path(), places, delays).await;
    let (near, far) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let wrong = || json!({ "code": "WRONG" });
    // The first failure is answered at once, the others wait: all but four until others need their places.
    assert_eq!(log_in(server, near, wrong()).await, 401);
    let mut waiting: tokio::task::JoinSet<u16> =
        (0..20).map(|_| log_in(server, near, wrong())).collect();
    for _ in 0..16 {
        let status = waiting.join_next().await.unwrap().unwrap();
        assert!([429, 0].contains(&status), "{status}");
    }
    // A right login is answered at once, from any address.
    for from in [near, far] {
        let login = json!({ "token": "right" });
        assert_eq!(log_in(server, from, login).await, 200);
    }
    assert_eq!(log_in(server, far, wrong()).await, 401);
}

#[tokio::test]
async fn an_old_cookie_is_no_guess() {
    let home = tempfile::tempdir().unwrap();
    let delays = Delays {
        first: FOR_EVER,
        longest: FOR_EVER,
        ..Delays::default()
    };
    let server = start(home.path(), PlaceLimits::default(), delays).await;
    let get = async |header: &str| {
        let close = "Connection: close";
        let request = format!("GET / HTTP/1.1\r\nHost: {server}\r\n{header}\r\n{close}\r\n\r\n");
        let answer = send(server, [127, 0, 0, 1], &request);
        let answer = tokio::time::timeout(HANGING, answer).await;
        answer.unwrap_or_else(|_| panic!("{header} waits"))
    };
    // A second failure would wait for ever, and so would a wrong token after a first one.
    for _ in 0..20 {
        assert_eq!(get("Cookie: tertulia=old").await, 401);
    }
    assert_eq!(get("Authorization: Bearer guess").await, 401);
}

/// Time passes as soon as nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_end_is_given_up_in_time() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), PlaceLimits::default(), Delays::default()).await;
    let head = format!("POST /login HTTP/1.1\r\nHost: {server}\r\nContent-Length: 100\r\n\r\n{{");
    for (request, statuses) in [
        ("", &[0, 408][..]),
        ("GET / HTTP/1.1\r\nHost: ", &[0, 400, 408]),
        (&head, &[408]),
    ] {
        let begun = tokio::time::Instant::now();
        let status = send(server, [127, 0, 0, 1], request).await;
        assert!(statuses.contains(&status), "{request:?}: {status}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{request:?}: {took:?}");
    }
}
