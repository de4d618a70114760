//! Full-screen terminal frontend in the Elm architecture: events and effects are data, and the view
//! is a function of the state.
//!
//! [`run`] shows one session after another until the user leaves, in this process or on a server. The
//! program around it implements [`host::Host`], which knows arguments, settings and environment. Each
//! part also works alone:
//!
//! ```
//! use tertulia_tui::host::ExportFormat;
//! use tertulia_tui::slash::{self, Slash};
//!
//! let command = slash::parse("/export jsonl session.jsonl");
//! assert!(matches!(
//!     command,
//!     Some(Ok(Slash::Export { format: Some(ExportFormat::Jsonl), .. }))
//! ));
//! ```
//!
//! | part | contents |
//! |---|---|
//! | [`host`], [`error`] | what the program provides; errors with hints |
//! | [`source`], [`attach`] | a session in this process or on a server |
//! | [`effect`] | events and effects of `update`, and the session to open next |
//! | [`store_service`] | reads the store without blocking the event loop |
//! | [`theme`], [`keymap`], [`links`], [`notify`] | colours, keys; what the terminal can show; when it calls the user |
//! | [`slash`], [`completion`], [`history`] | commands, completion and history of the prompt |
//! | [`transcript`], [`item`], [`entries`] | messages of a session, made of its entries |
//! | [`picker`], [`search`], [`tree`], [`stats`], [`rewind`] | overlays |

mod activity;
pub mod attach;
mod bill;
mod burst;
mod choice;
mod chooser;

pub mod completion;
mod dialog;
mod diff;
mod driver;
mod editor;
pub mod effect;
pub mod entries;
pub mod error;
mod event_loop;
mod event_queue;
mod follower;
mod geometry;
mod help;
mod highlight;
pub mod history;
pub mod host;
mod input;
pub mod item;
mod key_event;
pub mod keymap;
pub mod links;
mod live;
mod local;
mod markdown;
pub mod notify;
mod one_line;
mod overlay;
pub mod picker;
mod queue;
mod remote;
pub mod rewind;
pub mod search;
mod session_info;
mod sheet;
pub mod slash;
pub mod source;
mod state;
pub mod stats;
mod status;
pub mod store_service;
mod terminal;
#[cfg(test)]
mod test_support;
mod text;
pub mod theme;
mod toast;
mod todos;
pub mod transcript;
pub mod tree;
mod type_ahead;
mod update;
mod view;

pub use event_loop::{Finished, run};
