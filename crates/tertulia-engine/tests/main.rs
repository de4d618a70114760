//! Integration tests of the engine, with a real store.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod message_queue;
mod replaced;
mod replay;
mod task;
