//! A client's bytes: what it sends is read line by line, what it is told is written as it can take it.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::client::Client;
use crate::hub::{Guest, Hub};
use crate::lines::{Framed, Framer};
use crate::outbox::{End, Outbox};
use crate::protocol::{Answer, ErrorKind, LONGEST_LINE, Reply, Trouble};
use crate::read::{self, Wrong};

/// How much is read at a time.
const CHUNK: usize = 16 * 1024;
/// How much is written at a time.
const BATCH: usize = 64 * 1024;
/// Longer lines are read where they hold up nobody else.
const LONG: usize = 64 * 1024;
/// How often it is looked whether a client that says nothing more has been answered.
const TICK: Duration = Duration::from_millis(10);

/// Serves one client to its end. One that says nothing more is answered what it asked before.
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
        // Nobody reads any more, so nobody is to be answered.
        () = &mut written => {}
        () = listen(&hub, &guest, reader) => {
            guest.outbox.close();
            written.await;
        }
    }
    hub.dismiss(&guest);
}

/// Tells why there is no place, and hangs up.
pub async fn refuse(writer: &mut (impl AsyncWrite + Unpin), trouble: Trouble) {
    let reply = Reply {
        id: None,
        answer: Answer::Error(trouble),
    };
    let mut line = Vec::new();
    encode(&reply, &mut line);
    // There is nobody to tell if the client is gone.
    let _ = writer.write_all(&line).await;
    let _ = writer.shutdown().await;
}

/// Reads and does what is asked, until nothing more is.
async fn listen(hub: &Arc<Hub>, guest: &Arc<Guest>, mut reader: impl AsyncRead + Unpin) {
    let mut client = Client::new(hub.clone(), guest.clone());
    let mut framer = Framer::new(LONGEST_LINE);
    let mut chunk = vec![0; CHUNK];
    let mut kept = Kept { hub, bytes: 0 };
    loop {
        while let Some(framed) = framer.next_line() {
            // Whoever asks faster than they read has to wait.
            guest.outbox.eased().await;
            take(hub, guest, &mut client, framed).await;
        }
        let read = tokio::select! {
            read = reader.read(&mut chunk) => read.unwrap_or(0),
            // The goodbye and the end of the outbox come from the hub.
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
        // Whoever sends much does not keep the others waiting.
        tokio::task::yield_now().await;
    }
    framer.end();
    while let Some(framed) = framer.next_line() {
        take(hub, guest, &mut client, framed).await;
    }
    hub.hush(guest);
    while hub.works_for(guest) {
        tokio::time::sleep(TICK).await;
    }
}

/// What is kept of a line that has no end yet. Dropped, nothing is.
struct Kept<'a> {
    hub: &'a Hub,
    bytes: usize,
}

impl Kept<'_> {
    /// Whether there is room for so much.
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

async fn take(hub: &Arc<Hub>, guest: &Guest, client: &mut Client, framed: Framed) {
    let wrong = match framed {
        Framed::Line(line) => match parsed(line).await {
            Ok(request) => return client.handle(request).await,
            Err(wrong) => wrong,
        },
        Framed::TooLong => Wrong {
            id: None,
            trouble: Trouble::new(
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
            trouble: Trouble::new(ErrorKind::Failed, error.to_string()),
        })
    })
}

/// Writes what waits until nothing follows, or nobody reads.
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
    // The other end may be gone already.
    let _ = writer.shutdown().await;
}

/// Whoever is hung up on has a little time to read why.
async fn overdue(hub: &Hub, outbox: &Outbox) {
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
    /// Waits until it is known that the client does not read.
    async fn given_up(&self) {
        while self.end() != Some(End::TooSlow) {
            tokio::time::sleep(TICK * 10).await;
        }
    }
}
