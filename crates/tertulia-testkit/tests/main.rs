//! The fakes themselves: the provider, the terminal, and the ACP agent with the real client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[cfg(target_os = "linux")]
mod acp;
mod provider;
mod terminal;
