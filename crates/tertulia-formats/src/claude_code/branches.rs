//! Sorts the lines of a file into branches. Tool results and retries also have several children in
//! the tree; only a second prompt after the same line is a fork.

use std::collections::HashMap;

use serde_json::Value;

use super::line::{self, Pending};
use super::{AGENT, PROGRAM};
use crate::importer::{self, SessionBuilder, Skipped, text_at};
use tertulia_core::entry::SpeakerKind;
use tertulia_core::foreign::Foreign;

/// The branches of a session.
#[derive(Debug, Default)]
pub(super) struct Branches {
    branches: Vec<Branch>,
    /// The branch of each line, and the number of its own messages up to there.
    places: HashMap<String, (usize, usize)>,
    current: usize,
}

#[derive(Debug)]
struct Branch {
    /// The branch that it leaves, after this many of that branch's own messages.
    from: Option<(usize, usize)>,
    /// Id of the line that begins it.
    first: String,
    builder: SessionBuilder,
    pending: Pending,
}

impl Branch {
    fn new(from: Option<(usize, usize)>, first: &str) -> Branch {
        Branch {
            from,
            first: first.to_owned(),
            builder: SessionBuilder::new(PROGRAM, AGENT),
            pending: Pending::default(),
        }
    }

    /// Returns true if a person wrote something after the first `count` messages.
    fn has_prompt_after(&self, count: usize) -> bool {
        let mut later = self.builder.said().iter().skip(count);
        later.any(|said| said.message.speaker.kind == SpeakerKind::Human)
    }
}

impl Branches {
    /// Adds a line.
    pub(super) fn read(&mut self, line: &Value, skipped: &mut Skipped) {
        if self.branches.is_empty() {
            self.branches.push(Branch::new(None, ""));
        }
        let uuid = text_at(line, "/uuid").unwrap_or_default();
        let parent = text_at(line, "/parentUuid").and_then(|parent| self.places.get(parent));
        let place = parent.copied();
        let branch = match place {
            Some((branch, count))
                if line::is_prompt(line) && self.branches[branch].has_prompt_after(count) =>
            {
                self.branches.push(Branch::new(Some((branch, count)), uuid));
                self.branches.len() - 1
            }
            Some((branch, _)) => branch,
            None => self.current,
        };
        self.current = branch;
        let Branch {
            builder, pending, ..
        } = &mut self.branches[branch];
        line::read(line, builder, pending, skipped);
        if !uuid.is_empty() {
            let count = self.branches[branch].builder.said().len();
            // A repeated line keeps its first place.
            self.places
                .entry(uuid.to_owned())
                .or_insert((branch, count));
        }
    }

    /// Returns the branches as sessions, each after the one that it leaves.
    pub(super) fn sessions(self, original: &str) -> Vec<Foreign> {
        let branches = self.branches.into_iter().map(|mut branch| {
            branch.pending.finish(&mut branch.builder);
            importer::Branch {
                from: branch.from,
                first: branch.first,
                builder: branch.builder,
            }
        });
        importer::sessions_of_branches(branches.collect(), original, None)
    }
}
