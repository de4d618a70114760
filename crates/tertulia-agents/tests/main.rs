//! Agents and tools with real processes and a scripted server on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use std::time::Duration;

use tertulia_testkit::waiting::wait_until_async;

mod api;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod vendor;

/// Moves the clock of the runtime ahead, as if so much time had passed.
async fn pass(span: Duration) {
    tokio::time::pause();
    tokio::time::advance(span).await;
    tokio::time::resume();
}

/// Moves the clock ahead once a condition holds and everything written until then is read: between
/// two looks, the runtime attends to its pipes.
async fn pass_once(what: &str, mut holds: impl FnMut() -> bool, span: Duration) {
    let mut seen = 0;
    wait_until_async(what, || {
        seen = if holds() { seen + 1 } else { 0 };
        seen > 2
    })
    .await;
    pass(span).await;
}
