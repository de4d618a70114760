//! Ports for servers that cannot choose one themselves.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::ops::Range;

/// Ports that the system gives to no connection by itself: one of these stays free until its server
/// has it, and while a killed server is started again.
const PORTS: Range<u16> = 10_000..32_000;

/// Returns a port of this machine that nothing listens on.
pub fn unused_port() -> u16 {
    loop {
        let any = RandomState::new().hash_one(std::process::id());
        let port = PORTS.start + (any % u64::from(PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
