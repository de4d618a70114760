//! Serves sessions to other programs: a JSON-lines protocol over standard input and output or a
//! Unix socket.
//!
//! ```text
//! lines → read → client → hub → hosted ← session task ← host (knows agents and sessions)
//!                   ↑              |
//!                outbox ←──────────┘
//! ```
//!
//! ```
//! use tertulia_server::protocol::{Ask, Request};
//!
//! let line = r#"{"id": 1, "type": "session_create", "kind": "pair", "max_rounds": 5}"#;
//! let request: Request = serde_json::from_str(line).unwrap();
//! assert!(matches!(request.ask, Ask::SessionCreate { max_rounds: Some(5), .. }));
//! ```
//!
//! | part | purpose | kind |
//! |---|---|---|
//! | [`protocol`] | all requests and replies, the error kinds | pure |
//! | [`lines`] | bytes to lines of limited length | pure |
//! | [`read`] | a line to a request, or an error | pure |
//! | [`blocks`] | the code blocks in a stream of text | pure |
//! | [`reply_stream`] | the events of a turn as replies to the client that started it | pure |
//! | [`recent_events`], [`live_state`] | recent events, and the current state, for late joiners | pure |
//! | [`schema`] | the protocol as a JSON Schema | pure |
//! | [`spec`] | which participants a client asked for | pure |
//! | [`host`] | what the program provides: sessions, agents, user-facing messages | a trait |
//! | [`outbox`] | bounded queue of replies to a client | IO |
//! | [`hosted`], [`session_task`] | a session and its followers; its task | IO |
//! | [`read_along`] | what another program writes to a session | IO |
//! | [`transcript`] | a part of a session as HTML | mostly pure |
//! | [`hub`] | the running conversations and the clients | IO |
//! | [`client`], [`connection`] | requests of a client; its bytes | IO |
//! | [`socket`], [`listen`] | the socket; accepting connections | IO |
//! | `web` | HTTP and WebSocket: the page and who may see it (feature `web`) | IO |
//! | [`call`] | the client side, for programs that call a running server | IO |

pub mod blocks;
pub mod call;
pub mod client;
pub mod connection;
pub mod host;
pub mod hosted;
pub mod hub;
pub mod lines;
pub mod listen;
pub mod live_state;
pub mod outbox;
pub mod protocol;
pub mod read;
pub mod read_along;
pub mod recent_events;
pub mod reply_stream;
pub mod schema;
pub mod session_task;
pub mod socket;
pub mod spec;
pub mod transcript;
#[cfg(feature = "web")]
pub mod web;
