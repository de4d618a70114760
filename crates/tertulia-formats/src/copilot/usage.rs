//! Token figures of each request, which the program keeps in a database for all sessions. A row names
//! the turn of the user; the requests of a turn are its answers, in order.

use crate::importer::{Input, ReadError};
use tertulia_core::entry::Usage;

/// Name of the database, in the folder above those of the sessions.
#[cfg(feature = "sqlite")]
const DATABASE: &str = "session-store.db";

/// One request to a model.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: String,
    /// Number of the user's turn.
    pub(super) turn: Option<usize>,
    pub(super) usage: Usage,
    /// The subagent, or the tool call that started it.
    agent: [Option<String>; 2],
}

/// The requests of a session.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Request>,
    fault: Option<String>,
}

impl Requests {
    /// Reads the requests of a session.
    pub(super) fn of(input: &Input<'_>, session: &str) -> Requests {
        match read(input, session) {
            Ok(all) => Requests { all, fault: None },
            Err(error) => Requests {
                all: Vec::new(),
                fault: Some(format!("usage of requests: {error}")),
            },
        }
    }

    /// Removes and returns the requests of a subagent, or those of the session itself.
    pub(super) fn take(&mut self, agent: Option<&str>) -> Vec<Request> {
        let of_agent = |request: &mut Request| match agent {
            None => request.agent == [None, None],
            Some(agent) => request.agent.iter().flatten().any(|one| one == agent),
        };
        let mut taken: Vec<Request> = self.all.extract_if(.., of_agent).collect();
        if agent.is_some() {
            // Turns are those of the user with the session itself.
            taken.iter_mut().for_each(|request| request.turn = None);
        }
        taken
    }

    /// Names what could not be attached to a session.
    pub(super) fn lost(self) -> Option<String> {
        let rest = self.all.len();
        let rest = (rest > 0).then(|| format!("usage of requests of unknown agents ({rest})"));
        self.fault.or(rest)
    }
}

#[cfg(not(feature = "sqlite"))]
fn read(_input: &Input<'_>, _session: &str) -> Result<Vec<Request>, ReadError> {
    Ok(Vec::new())
}

#[cfg(feature = "sqlite")]
fn read(input: &Input<'_>, session: &str) -> Result<Vec<Request>, ReadError> {
    use crate::importer::Database;

    let mut requests = Vec::new();
    if input.content.is_some() {
        return Ok(requests);
    }
    // Older versions have no folder for each session.
    let folders = input.path.ancestors().skip(2).take(2);
    for folder in folders {
        let database = match Database::open(&folder.join(DATABASE)) {
            Err(ReadError::Io(_)) => continue,
            database => database?,
        };
        if !database.has("assistant_usage_events", "session_id")? {
            continue;
        }
        database.rows(
            "SELECT * FROM assistant_usage_events WHERE session_id = ?1 ORDER BY id",
            &[session],
            &mut |row| {
                let number = row.number("id").unwrap_or_default();
                let turn = row.number("turn_index");
                requests.push(Request {
                    id: format!("{session}:{number}"),
                    turn: turn.and_then(|turn| usize::try_from(turn).ok()),
                    usage: Usage {
                        input: row.count("input_tokens"),
                        output: row.count("output_tokens"),
                        cache_read: row.count("cache_read_tokens"),
                        cache_written: row.count("cache_write_tokens"),
                        estimated: false,
                    },
                    agent: [row.text("agent_id"), row.text("parent_tool_call_id")],
                });
            },
        )?;
        break;
    }
    Ok(requests)
}
