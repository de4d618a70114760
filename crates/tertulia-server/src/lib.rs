//! Serves talks to other programs: one JSON-lines protocol over standard input and output or a Unix socket.
//!
//! ```text
//! lines → read → client → hub → room ← actor (a talk) ← host (who knows agents and sessions)
//!                   ↑              |
//!                outbox ←──────────┘
//! ```
//!
//! | part | what | kind |
//! |---|---|---|
//! | [`protocol`] | every request and every answer, the error kinds | pure |
//! | [`happening`] | everything that happens in a talk, for whoever shows all of it | pure |
//! | [`lines`] | bytes to lines, of a limited length | pure |
//! | [`read`] | a line to a request, or what is wrong with it | pure |
//! | [`blocks`] | the code blocks in a stream of text | pure |
//! | [`telling`] | what happens in a talk as whoever asked is told | pure |
//! | [`window`], [`moment`] | what happened lately, and what is being said now: for who joins in the middle | pure |
//! | [`schema`] | the protocol as a JSON Schema | pure |
//! | [`host`] | what the program around it knows: sessions, agents, words for people | a trait |
//! | [`outbox`] | what waits to be written to a client, within limits | IO |
//! | [`room`], [`gate`], [`actor`] | a session, who follows it; the talk's door; the talk at work | IO |
//! | [`hub`] | which talks run | IO |
//! | [`client`], [`connection`] | what a client asks; its bytes | IO |
//! | [`socket`], [`listen`] | the socket, and who may connect | IO |
//! | [`call`] | the other end, for programs that ask a running server | IO |

pub mod actor;
pub mod blocks;
pub mod call;
pub mod client;
pub mod connection;
pub mod gate;
pub mod happening;
pub mod host;
pub mod hub;
pub mod lines;
pub mod listen;
pub mod moment;
pub mod outbox;
pub mod protocol;
pub mod read;
pub mod room;
pub mod schema;
pub mod socket;
pub mod telling;
pub mod window;
