//! Connection of one client: reads requests line by line, writes replies as fast as the client
//! reads.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::client::{Access, Client};
use crate::hub::{ClientHandle, Hub};
use crate::lines::{Framed, Framer};
use crate::outbox::{End, Outbox};
use crate::protocol::{Answer, ErrorBody, ErrorKind, LONGEST_LINE, Reply};
use crate::read::{self, Wrong};

/// Bytes per read.
const CHUNK: usize = 16 * 1024;
/// Bytes per write.
const BATCH: usize = 64 * 1024;
/// Lines from this size on are parsed on the blocking pool, so that they delay no other client.
const LONG: usize = 64 * 1024;
/// Polling interval for a client that has closed its sending side and still waits for replies.
const TICK: Duration = Duration::from_millis(10);

/// Serves one client until it disconnects. After the client closes its sending side, its pending
/// requests are still answered.
pub async fn serve<R, W>(hub: Arc<Hub>, reader: R, mut writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let guest = match hub.admit() {
        Ok(guest) => guest,
        Err(trouble) => return refuse(&mut writer, trouble).await,
    };
    let written = write(&hub, &guest.outbox, &mut writer);
    tokio::pin!(written);
    tokio::select! {
        // The client no longer reads, so replies are pointless.
        () = &mut written => {}
        () = listen(&hub, &guest, reader) => {
            guest.outbox.close();
            written.await;
        }
    }
    hub.dismiss(&guest);
}

/// Sends the reason why the client is not admitted, and closes the connection.
pub async fn refuse(writer: &mut (impl AsyncWrite + Unpin), trouble: ErrorBody) {
    let reply = Reply {
        id: None,
        answer: Answer::Error(trouble),
    };
    let mut line = Vec::new();
    encode(&reply, &mut line);
    // The client may be gone already.
    let _ = writer.write_all(&line).await;
    let _ = writer.shutdown().await;
}

/// Reads and handles requests until the input ends.
async fn listen(hub: &Arc<Hub>, guest: &Arc<ClientHandle>, mut reader: impl AsyncRead + Unpin) {
    let mut client = Client::new(hub.clone(), guest.clone(), Access::Full);
    let mut framer = Framer::new(LONGEST_LINE);
    let mut chunk = vec![0; CHUNK];
    let mut kept = Kept { hub, bytes: 0 };
    loop {
        while let Some(framed) = framer.next_line() {
            // Backpressure: a client that sends faster than it reads has to wait.
            guest.outbox.eased().await;
            take(hub, guest, &mut client, framed).await;
        }
        let read = tokio::select! {
            read = reader.read(&mut chunk) => read.unwrap_or(0),
            // The hub sends the goodbye and closes the outbox.
            () = hub.ending().cancelled() => return std::future::pending().await,
        };
        if read == 0 {
            break;
        }
        framer.push(&chunk[..read]);
        if !kept.grow_to(framer.begun()) {
            framer.let_go();
            kept.grow_to(0);
        }
        // A client that sends much must not delay the others.
        tokio::task::yield_now().await;
    }
    framer.end();
    while let Some(framed) = framer.next_line() {
        take(hub, guest, &mut client, framed).await;
    }
    client.finish().await;
    hub.input_closed(guest);
    while hub.works_for(guest) {
        tokio::time::sleep(TICK).await;
    }
}

/// Accounts for the bytes of an incomplete line; releases them on drop.
struct Kept<'a> {
    hub: &'a Hub,
    bytes: usize,
}

impl Kept<'_> {
    /// Updates the accounted size. Returns false if the limit of all clients is exceeded.
    fn grow_to(&mut self, bytes: usize) -> bool {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.hub.keep(before, bytes)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.grow_to(0);
    }
}

/// Handles a line: a request, or something that is none.
pub(crate) async fn take(
    hub: &Arc<Hub>,
    guest: &ClientHandle,
    client: &mut Client,
    framed: Framed,
) {
    let wrong = match framed {
        Framed::Line(line) => match parsed(line).await {
            Ok(request) => return client.handle(request).await,
            Err(wrong) => wrong,
        },
        Framed::TooLong => Wrong {
            id: None,
            trouble: ErrorBody::new(
                ErrorKind::TooLarge,
                format!(
                    "the line is too long and was ignored: at most {LONGEST_LINE} bytes, less while other clients send long lines"
                ),
            ),
        },
    };
    let no_request = [ErrorKind::Malformed, ErrorKind::TooLarge];
    if no_request.contains(&wrong.trouble.kind) {
        hub.count_malformed();
    }
    let answer = Answer::Error(wrong.trouble);
    guest.outbox.post(wrong.id.as_ref(), answer);
}

async fn parsed(line: Vec<u8>) -> Result<crate::protocol::Request, Wrong> {
    if line.len() < LONG {
        return read::request(&line);
    }
    let read = tokio::task::spawn_blocking(move || read::request(&line)).await;
    read.unwrap_or_else(|error| {
        Err(Wrong {
            id: None,
            trouble: ErrorBody::new(ErrorKind::Failed, error.to_string()),
        })
    })
}

/// Writes replies until the outbox is closed or the client stops reading.
async fn write(hub: &Hub, outbox: &Outbox, writer: &mut (impl AsyncWrite + Unpin)) {
    let mut lines = Vec::new();
    while let Some(replies) = outbox.take(BATCH).await {
        lines.clear();
        for reply in &replies {
            encode(reply, &mut lines);
        }
        let written = async {
            writer.write_all(&lines).await?;
            writer.flush().await
        };
        tokio::select! {
            written = written => {
                if written.is_err() {
                    return;
                }
            }
            () = overdue(hub, outbox) => return,
        }
    }
    // The client may be gone already.
    let _ = writer.shutdown().await;
}

/// Waits until a client that is too slow has had its grace period to read the reason.
pub(crate) async fn overdue(hub: &Hub, outbox: &Outbox) {
    outbox.given_up().await;
    tokio::time::sleep(hub.limits().grace).await;
}

fn encode(reply: &Reply, lines: &mut Vec<u8>) {
    let begin = lines.len();
    if serde_json::to_writer(&mut *lines, reply).is_err() {
        lines.truncate(begin);
        return;
    }
    lines.push(b'\n');
}

impl Outbox {
    /// Waits until the outbox has given up on a client that does not read.
    async fn given_up(&self) {
        while self.end() != Some(End::TooSlow) {
            tokio::time::sleep(TICK * 10).await;
        }
    }
}
