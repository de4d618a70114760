//! The WebSocket of a client: the protocol of the server, one JSON object per text frame.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::Web;
use super::credentials::Holder;
use crate::client::{Access, Client};
use crate::connection::{overdue, take};
use crate::hub::ClientHandle;
use crate::lines::Framed;
use crate::outbox::Outbox;
use crate::protocol::{Answer, Ask, ErrorBody, ErrorKind, Reply, Request};
use crate::read;

/// Bytes per write.
const BATCH: usize = 64 * 1024;
/// Time between pings.
const PING: Duration = Duration::from_secs(30);
/// Time after which a client that answers no ping is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Requests of a client that are handled in a second; more of them wait.
const RATE: u32 = 200;
/// Time for the secret of a login to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);

/// When a client was last heard.
#[derive(Clone)]
struct Heard(Arc<Mutex<Instant>>);

impl Heard {
    fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a client until it goes, or may no longer see the page.
pub async fn serve(web: &Arc<Web>, stream: WebSocket, holder: &Holder) {
    let (mut writer, mut reader) = stream.split();
    if holder.needs_secret() {
        let is_proven = tokio::select! {
            is_proven = authenticate(&mut writer, &mut reader, holder) => is_proven,
            () = web.hub.ending().cancelled() => false,
        };
        if !is_proven {
            return farewell(&mut writer, close_code::POLICY, "log in again").await;
        }
    }
    let access = holder.access;
    let guest = match web.hub.admit() {
        Ok(guest) => guest,
        Err(trouble) => {
            let reply = Reply {
                id: None,
                answer: Answer::Error(trouble),
            };
            let _ = writer.send(frame(&reply)).await;
            return farewell(&mut writer, close_code::AGAIN, "busy").await;
        }
    };
    if access == Access::ReadOnly {
        // It cannot answer permission requests.
        guest
            .speaks
            .store(false, std::sync::atomic::Ordering::Relaxed);
    }
    let heard = Heard(Arc::new(Mutex::new(Instant::now())));
    let (code, reason) = tokio::select! {
        end = write(web, &guest.outbox, &mut writer, &heard) => end,
        end = listen(web, &guest, reader, access, &heard) => end,
        () = revoked(web, holder) => (close_code::POLICY, "logged out"),
    };
    web.hub.dismiss(&guest);
    farewell(&mut writer, code, reason).await;
}

/// Waits for the secret of a login. The cookie that opened the WebSocket does not suffice: a browser
/// sends it to every server on the same host.
async fn authenticate(
    writer: &mut SplitSink<WebSocket, Message>,
    reader: &mut SplitStream<WebSocket>,
    holder: &Holder,
) -> bool {
    let first = async {
        loop {
            match reader.next().await {
                Some(Ok(Message::Text(text))) => return Some(read::request(text.as_bytes())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    };
    let Ok(Some(first)) = tokio::time::timeout(PATIENCE, first).await else {
        return false;
    };
    let (id, is_right) = match first {
        Ok(Request { id, ask }) => {
            let is_right =
                matches!(ask, Ask::Authenticate { secret } if holder.has_secret(&secret));
            (id, is_right)
        }
        Err(wrong) => (wrong.id, false),
    };
    let answer = match is_right {
        true => Answer::Authenticated {},
        false => Answer::Error(
            ErrorBody::new(ErrorKind::Unauthorized, "this login is not known here").hint(
                "log in again; the first frame is `authenticate` with the secret of the login",
            ),
        ),
    };
    let sent = writer.send(frame(&Reply { id, answer })).await;
    is_right && sent.is_ok()
}

/// Why a WebSocket ends: its code, and words for it.
type Ending = (u16, &'static str);

/// Handles requests until the client goes.
async fn listen(
    web: &Arc<Web>,
    guest: &Arc<ClientHandle>,
    mut reader: SplitStream<WebSocket>,
    access: Access,
    heard: &Heard,
) -> Ending {
    let mut client = Client::new(web.hub.clone(), guest.clone(), access);
    let (mut second, mut requests) = (Instant::now(), 0);
    while let Some(message) = reader.next().await {
        heard.now();
        match message {
            Ok(Message::Text(text)) => {
                if second.elapsed() >= Duration::from_secs(1) {
                    (second, requests) = (Instant::now(), 0);
                }
                requests += 1;
                if requests > RATE {
                    sleep_until(second + Duration::from_secs(1)).await;
                }
                // Backpressure: a client that sends faster than it reads has to wait.
                guest.outbox.eased().await;
                let line = Framed::Line(text.as_bytes().to_vec());
                take(&web.hub, guest, &mut client, line).await;
            }
            Ok(Message::Binary(_)) => return (close_code::UNSUPPORTED, "text frames only"),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_)) => return (close_code::NORMAL, ""),
            Err(error) => {
                let is_long = error.to_string().contains("too long");
                return match is_long {
                    true => (close_code::SIZE, "the frame is too long"),
                    false => (close_code::PROTOCOL, "the frame cannot be read"),
                };
            }
        }
    }
    (close_code::NORMAL, "")
}

/// Writes replies and pings until the outbox is closed or the client is gone.
async fn write(
    web: &Arc<Web>,
    outbox: &Outbox,
    writer: &mut SplitSink<WebSocket, Message>,
    heard: &Heard,
) -> Ending {
    let mut next = Instant::now() + PING;
    loop {
        let replies = tokio::select! {
            replies = outbox.take(BATCH) => replies,
            () = sleep_until(next) => {
                if heard.at().elapsed() >= SILENCE {
                    return (close_code::AWAY, "no answer");
                }
                next = Instant::now() + PING;
                Some(Vec::new())
            }
        };
        let Some(replies) = replies else {
            return (close_code::AWAY, "the server is ending");
        };
        let sent = async {
            if replies.is_empty() {
                return writer.send(Message::Ping(Default::default())).await;
            }
            for reply in &replies {
                writer.feed(frame(reply)).await?;
            }
            writer.flush().await
        };
        tokio::select! {
            sent = sent => {
                if sent.is_err() {
                    return (close_code::AWAY, "");
                }
            }
            () = overdue(&web.hub, outbox) => return (close_code::POLICY, "too slow"),
        }
    }
}

/// Waits until a holder has lost its access.
async fn revoked(web: &Arc<Web>, holder: &Holder) {
    let mut changes = web.authenticator.store().changes();
    loop {
        let now = web.hub.host().now();
        if !web.authenticator.still_has(holder, now) {
            return;
        }
        let left = holder.expires_at.map(|end| now.duration_until(end));
        let left = left.map(|left| Duration::try_from(left).unwrap_or_default());
        // Clocks of long waits drift: an hour later it is looked at again.
        let left = left.map(|left| left.min(Duration::from_secs(3600)));
        let changed = async {
            match changes.as_mut() {
                Some(changes) => changes.next().await,
                None => tokio::time::sleep(PING).await,
            }
        };
        let ended = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = ended => {}
        }
    }
}

fn frame(reply: &Reply) -> Message {
    let text = serde_json::to_string(reply).unwrap_or_default();
    Message::Text(Utf8Bytes::from(text))
}

async fn farewell(writer: &mut SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let close = Message::Close(Some(CloseFrame {
        code,
        reason: Utf8Bytes::from_static(reason),
    }));
    // The client may be gone already.
    let _ = tokio::time::timeout(FAREWELL, async {
        let _ = writer.send(close).await;
        let _ = writer.close().await;
    })
    .await;
}
