//! Live sessions: pure policies turn events into effects, and one interpreter carries the effects out.
//!
//! A frontend builds a [`spec::SessionSpec`]; the program around the engine resolves it to a
//! [`setup::Setup`]; [`task::run`] opens it, executes the [`live::SessionCommand`]s of its frontends
//! and publishes [`event::SessionEvent`]s.
//!
//! ```
//! use tertulia_engine::spec::{AgentSpec, ParticipantSpec, SessionSpec};
//!
//! let spec = SessionSpec {
//!     participants: ParticipantSpec::Chat(AgentSpec {
//!         agent: Some("demo".to_owned()),
//!         model: None,
//!     }),
//!     ..SessionSpec::default()
//! };
//! assert_ne!(spec, SessionSpec::default());
//! ```
//!
//! `examples/session.rs` drives a whole session.
//!
//! | part | contents |
//! |---|---|
//! | [`spec`], [`setup`] | what to open, by names; the same with agents, ready to be opened |
//! | [`replay`] | an earlier session to play again, with its recorded tool results |
//! | [`task`], [`live`] | the task of a live session; an open session that executes commands |
//! | [`event`], [`notice`], [`error`] | what frontends receive |
//! | [`conversation`] | carries effects out: the only module where an agent meets a store |
//! | [`message_queue`] | messages that wait for the running turn, durable, for all frontends |
//! | [`prompt`] | a message of the user, with the files attached to it |
//! | [`policy`] | what decides who is asked next, and with what: events in, effects out |
//! | [`chat`], [`team`], [`pair`] | the policies: one agent, a team, an instructor and a worker |
//! | [`answer`] | one answer of one agent, with its tool calls |
//! | [`context`], [`withdrawn`], [`tokens`] | what an agent gets: messages, summary, withdrawn prompts; token counts |
//! | [`single_answer`], [`merge_summary`] | one answer outside of a conversation; the summary of a merge |
//! | [`following`] | a session that another program writes to, read along |
//! | [`notification`] | tells the user that a session needs them, by a program of theirs |
//! | [`log_writer`] | appends to a session; forks on conflict, holds what cannot be saved |
//! | [`slash`], [`text`] | slash commands, and text for users, that all frontends share |
//! | [`frontend`] | the trait of what shows a conversation and asks the user |

pub mod answer;
pub mod chat;
pub mod context;
pub mod conversation;
pub mod error;
pub mod event;
pub mod following;
pub mod frontend;
pub mod live;
pub mod log_writer;
pub mod merge_summary;
pub mod message_queue;
pub mod notice;
pub mod notification;
pub mod pair;
pub mod policy;
pub mod prompt;
pub mod replay;
pub mod setup;
pub mod single_answer;
pub mod slash;
pub mod spec;
pub mod task;
pub mod team;
pub mod text;
pub mod tokens;
pub mod withdrawn;
