//! How a session begins: anew, or as a fork.

use jiff::Timestamp;

use super::sealed::wrapped_key;
use super::{Parent, SessionMeta};
use crate::entry::{Body, Created, Entry, Kind};

impl SessionMeta {
    pub(super) fn create(&mut self, at: Timestamp, created: &Created) {
        self.id = created.session;
        self.kind = created.kind;
        self.title.clone_from(&created.title);
        self.titled = created.title.is_some();
        self.team.clone_from(&created.team);
        self.project.clone_from(&created.project);
        self.project_ids.clone_from(&created.project_ids);
        self.cwd.clone_from(&created.cwd);
        self.seal = wrapped_key(created.seal.as_deref());
        self.created_at = at;
        self.updated_at = at;
        self.pair = (created.kind == Kind::Pair).then(Box::default);
        if let Some(terms) = &created.terms {
            self.agree(terms);
        }
    }

    pub(super) fn fork(&mut self, entry: &Entry) {
        let Body::Forked(forked) = &entry.body else {
            return;
        };
        self.id = forked.session;
        self.parent = Some(Parent::of(&forked.from, forked.relation));
        self.merged = None;
        if let Some(title) = &forked.title {
            self.title = Some(title.clone());
            self.titled = true;
        } else if let Some(title) = &self.title
            && !title.ends_with(" (fork)")
        {
            self.title = Some(format!("{title} (fork)"));
        }
        if forked.project.is_some() {
            self.project.clone_from(&forked.project);
            self.project_ids.clone_from(&forked.project_ids);
        }
        if forked.cwd.is_some() {
            self.cwd.clone_from(&forked.cwd);
        }
        if forked.seal.is_some() {
            self.seal = wrapped_key(forked.seal.as_deref());
            self.refuse_older_programs();
        }
        self.created_at = entry.at;
        self.updated_at = entry.at;
        // A fork cannot undo changes of the original, and does not inherit its place in the trash. A
        // branch is the same session, continued elsewhere.
        if entry.opened_branch().is_none() {
            self.changes.clear();
            self.trashed_at = None;
        }
        // Two sessions must not share one native session, or their contexts would mix.
        self.natives.clear();
        self.past_natives.clear();
        self.hidden_ids.sessions.clear();
        // The original id stays with the imported session.
        self.source = None;
        if let Some(terms) = &forked.terms {
            self.agree(terms);
        }
    }
}
