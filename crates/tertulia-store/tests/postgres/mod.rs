//! What only a store on a server can suffer: cut connections, killed servers and clients, locks that
//! expire, damaged rows, poolers.

#![allow(
    clippy::unwrap_used,
    reason = "everything here runs inside tests, where a panic is the report"
)]

mod cuts;
mod damage;
mod ends;
mod kills;
mod leases;
mod opening;
mod storm;
mod tls;
