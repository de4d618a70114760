//! Agents and tools with real processes and a scripted server on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

mod api;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod vendor;
