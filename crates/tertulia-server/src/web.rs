//! The web page: HTTP and WebSocket of the server. The WebSocket is another transport of the same
//! protocol, clients and sessions as the socket.
//!
//! ```text
//! listen → heads → handle → route → authenticator → access → assets | login | socket → client
//! ```
//!
//! | part | purpose | kind |
//! |---|---|---|
//! | [`access`] | hosts, origins, and what a request may do | pure |
//! | [`credentials`] | codes, tokens and grants, as hashes | pure |
//! | [`throttle`] | slows down wrong logins, by network | pure |
//! | [`places`] | which connections there may be, and which has to go | pure |
//! | [`heads`] | refuses requests whose lines end wrongly | pure |
//! | [`route`] | what a path means | pure |
//! | [`assets`] | the files of the page | data |
//! | [`authenticator`] | where the credentials are kept, and who has logged in | IO |
//! | [`reply`] | responses with their headers | pure |
//! | [`handle`] | answers a request | IO |
//! | [`login`] | exchanges a code or a token for a cookie | IO |
//! | [`socket`] | the WebSocket of a client | IO |
//! | [`listen`] | accepts connections, with TLS or without | IO |

pub mod access;
pub mod assets;
pub mod authenticator;
pub mod credentials;
pub mod handle;
pub mod heads;
pub mod listen;
pub mod login;
pub mod places;
pub mod reply;
pub mod route;
pub mod socket;
pub mod throttle;

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::hub::Hub;
use access::Site;
use assets::Files;
use authenticator::Authenticator;
use places::PlaceLimits;

/// What all connections of the web page share.
pub struct Web {
    /// The server.
    pub hub: Arc<Hub>,
    /// Names under which the page is reached.
    pub site: Site,
    /// Who may see it.
    pub authenticator: Authenticator,
    /// Tasks of connections.
    pub clients: TaskTracker,
    /// Limits of connections.
    pub places: PlaceLimits,
    /// What the page is made of.
    pub files: Files,
}
