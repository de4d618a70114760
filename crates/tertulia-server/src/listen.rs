//! Accepts connections of the same user and rejects all others.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::TaskTracker;

use crate::connection;
use crate::hub::Hub;
use crate::protocol::{ErrorBody, ErrorKind};

/// Pause after a failed accept, such as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients until the server shuts down; each is served by a task in `clients`.
pub async fn listen(hub: Arc<Hub>, listener: UnixListener, clients: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = hub.ending().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                clients.spawn(serve(hub.clone(), stream));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn serve(hub: Arc<Hub>, mut stream: UnixStream) {
    let ours = rustix::process::geteuid().as_raw();
    let theirs = stream.peer_cred().map(|peer| peer.uid());
    if !theirs.is_ok_and(|theirs| theirs == ours) {
        let words = "this server is another user's";
        let trouble = ErrorBody::new(ErrorKind::Conflict, words);
        return connection::refuse(&mut stream, trouble).await;
    }
    let (reader, writer) = stream.into_split();
    connection::serve(hub, reader, writer).await;
}
