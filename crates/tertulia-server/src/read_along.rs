//! Follows a session that another program writes to, for clients of this server. Nothing is read
//! unless a client follows, and then only after the store has changed.

use std::sync::Arc;
use std::time::Duration;

use tertulia_engine::event::SessionEvent;
use tertulia_engine::following::Following;
use tokio_util::sync::CancellationToken;

use crate::host::StoreChanges;
use crate::hosted::HostedSession;
use crate::hub::Hub;

/// Shortest time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between looks while an answer is due: a program that is killed changes nothing.
const ANSWER: Duration = Duration::from_secs(2);
/// Time between looks at a store that does not tell of changes.
const LOOK: Duration = Duration::from_secs(1);

/// Publishes the events of a session until `end`.
pub async fn run(hub: Arc<Hub>, hosted: Arc<HostedSession>, end: CancellationToken) {
    tokio::select! {
        () = end.cancelled() => {}
        () = hub.ending().cancelled() => {}
        () = follow(&hub, &hosted, &end) => {}
    }
    hosted.end_reading(&end);
}

async fn follow(hub: &Hub, hosted: &HostedSession, end: &CancellationToken) {
    // Changes are watched before the first look, so that none is missed.
    let mut changes = hub.host().changes();
    let sessions = hub.host().sessions();
    let Ok(row) = sessions.row(hosted.id()).await else {
        return;
    };
    let mut following = Following::new(sessions.clone(), row.meta);
    let floor = Box::new(following.state());
    if !hosted.publish_read(end, vec![SessionEvent::Opened { floor }]) {
        return;
    }
    let mut is_running = false;
    loop {
        // A store that cannot be read now is looked at again.
        if let Ok(read) = following.changes().await {
            for event in &read.events {
                match event {
                    SessionEvent::Began => is_running = true,
                    SessionEvent::Over { .. } => is_running = false,
                    _ => {}
                }
            }
            if !hosted.publish_read(end, read.events) {
                return;
            }
        }
        tokio::time::sleep(PAUSE).await;
        wait(changes.as_mut(), is_running).await;
    }
}

async fn wait(changes: Option<&mut StoreChanges>, is_running: bool) {
    match changes {
        Some(changes) if is_running => {
            // Whichever comes first.
            let _ = tokio::time::timeout(ANSWER, changes.next()).await;
        }
        Some(changes) => changes.next().await,
        None => tokio::time::sleep(LOOK).await,
    }
}
