//! What only a store on a server can suffer: cut connections, killed servers and clients, locks that
//! expire, damaged rows, poolers.

mod cuts;
mod damage;
mod kills;
mod leases;
mod opening;
