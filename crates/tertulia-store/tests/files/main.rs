//! What is special to the store in a folder of logs: its bytes on disk.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod derived;
mod home;
mod logs;
mod purge;
mod story;
