//! Integration tests of the server library.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod live;
mod schema;
mod transcript;
#[cfg(feature = "web")]
mod web;
