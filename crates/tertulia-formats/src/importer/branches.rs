//! Sessions that their program can take back to an earlier message. The path that was written first
//! is the session; what follows such a step back is a fork.

use tertulia_core::entry::{ImportedParent, ImportedRelation, SpeakerKind, Usage};
use tertulia_core::foreign::{Beginning, Foreign, ForeignFork, Said};

use super::{SessionBuilder, Skipped};

/// A branch of a session.
#[derive(Debug)]
pub struct Branch {
    /// The branch that it leaves, after this many of that branch's own messages.
    pub from: Option<(usize, usize)>,
    /// The program's id of what begins it.
    pub first: String,
    /// Its own messages.
    pub builder: SessionBuilder,
}

/// Returns branches as sessions, each after the one that it leaves. `fork` is the beginning that the
/// first of them shares with another session of the program.
pub fn sessions_of_branches(
    branches: Vec<Branch>,
    original: &str,
    fork: Option<&ForeignFork>,
) -> Vec<Foreign> {
    let refers = fork.is_some_and(|fork| matches!(fork.beginning, Beginning::Referred(_)));
    let mut sessions: Vec<Foreign> = Vec::with_capacity(branches.len());
    // Number of messages that a branch has from the branches before it.
    let mut inherited: Vec<usize> = Vec::new();
    for branch in branches {
        let name = match branch.from {
            None => original.to_owned(),
            Some(_) => format!("{original}#{}", branch.first),
        };
        let mut session = branch.builder.finish(&name, None);
        let mut shared = 0;
        match branch.from {
            None => session.fork = fork.cloned(),
            Some((from, count)) => {
                let parent = &sessions[from];
                shared = (inherited[from] + count).min(parent.said.len());
                session.source.parent = Some(ImportedParent {
                    original: parent.source.original.clone(),
                    relation: ImportedRelation::Fork,
                });
                let before = &parent.said[..shared];
                session.fork = Some(fork_of(parent, before));
                // A session that only refers to its beginning has branches that do so, too.
                match refers {
                    false => drop(session.said.splice(0..0, before.to_vec())),
                    true => shared = 0,
                }
            }
        }
        inherited.push(shared);
        sessions.push(session);
    }
    let mut inherited = inherited.into_iter();
    // A fork without messages of its own adds nothing to the session that it leaves.
    sessions.retain(|session| {
        let shared = inherited.next().unwrap_or_default();
        shared < session.said.len() || session.fork.is_none()
    });
    sessions
}

fn fork_of(parent: &Foreign, before: &[Said]) -> ForeignFork {
    let beginning = match &parent.fork {
        Some(fork) if matches!(fork.beginning, Beginning::Referred(_)) => {
            if before.is_empty() {
                return fork.clone();
            }
            Beginning::Referred(before.iter().map(|said| said.id).collect())
        }
        _ => Beginning::Copied(before.len()),
    };
    ForeignFork {
        from: parent.id,
        beginning,
    }
}

/// Collects the messages of a session that can be taken back.
#[derive(Debug)]
pub struct Branches {
    branches: Vec<Branch>,
    /// The messages up to now: their branches, and their places there.
    path: Vec<(usize, usize)>,
}

impl Branches {
    /// Starts a session without messages.
    pub fn new(builder: SessionBuilder) -> Branches {
        Branches {
            branches: vec![Branch {
                from: None,
                first: String::new(),
                builder,
            }],
            path: Vec::new(),
        }
    }

    /// Adds messages at the end. `id` names the fork that they begin after a step back.
    pub fn add(&mut self, id: &str, add: impl FnOnce(&mut SessionBuilder)) {
        let at = self.branch(id);
        let builder = &mut self.branches[at].builder;
        let before = builder.said().len();
        add(builder);
        let added = before..builder.said().len();
        self.path.extend(added.map(|place| (at, place)));
    }

    /// Returns the branch for the next message, which is new after a step back.
    fn branch(&mut self, id: &str) -> usize {
        let from = match self.path.last() {
            None if self.branches[0].builder.said().is_empty() => return 0,
            None => (0, 0),
            Some((branch, place)) => {
                if place + 1 == self.branches[*branch].builder.said().len() {
                    return *branch;
                }
                (*branch, place + 1)
            }
        };
        let builder = self.branches[from.0].builder.branch();
        self.branches.push(Branch {
            from: Some(from),
            first: id.to_owned(),
            builder,
        });
        self.branches.len() - 1
    }

    /// Counts a part of the file that is not a message.
    pub fn skip(&mut self, kind: &str) {
        self.branches[0].builder.skipped.count(kind);
    }

    /// Counts parts of the file that are not messages.
    pub fn skip_all(&mut self, kinds: &Skipped) {
        self.branches[0].builder.skipped.add(kinds);
    }

    /// Returns the number of messages up to now.
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// Returns true if there are no messages up to now.
    pub fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the messages up to now, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Said> {
        let path = self.path.iter().rev();
        path.filter_map(|(branch, place)| self.branches[*branch].builder.said().get(*place))
    }

    /// Goes back to the first `count` messages.
    pub fn go_back(&mut self, count: usize) {
        self.path.truncate(count);
    }

    /// Goes back to before the last `turns` messages that a person wrote.
    pub fn go_back_turns(&mut self, turns: usize) {
        let count = self.path.len();
        let is_human = |said: &Said| said.message.speaker.kind == SpeakerKind::Human;
        let kept = {
            let places = self.newest_first().enumerate();
            let mut prompts = places.filter(|(_, said)| is_human(said));
            match turns.checked_sub(1) {
                None => count,
                Some(others) => prompts
                    .nth(others)
                    .map_or(0, |(place, _)| count - place - 1),
            }
        };
        self.go_back(kept);
    }

    /// Attaches usage to the last answer, if it has none.
    pub fn usage(&mut self, usage: Usage, usage_id: String) -> bool {
        match self.path.last() {
            None => false,
            Some((branch, _)) => self.branches[*branch].builder.usage(usage, Some(usage_id)),
        }
    }

    /// Attaches usage to the answer that the program calls `id`, if it has none.
    pub fn usage_of(&mut self, id: &str, usage: Usage, usage_id: &str) -> bool {
        let mut branches = self.branches.iter_mut().rev();
        branches.any(|branch| branch.builder.usage_of(id, usage, usage_id))
    }

    /// Leaves out the last messages while their program is still writing them: an entry that was
    /// imported does not change. Returns their number.
    pub fn hold_back(&mut self, is_unfinished: impl Fn(&Said) -> bool) -> usize {
        let count = self
            .newest_first()
            .take_while(|said| is_unfinished(said))
            .count();
        for (branch, place) in self.path.split_off(self.path.len() - count) {
            self.branches[branch].builder.truncate(place);
        }
        count
    }

    /// Returns the sessions: first the path that was written first.
    pub fn sessions(self, original: &str, fork: Option<&ForeignFork>) -> Vec<Foreign> {
        sessions_of_branches(self.branches, original, fork)
    }
}
