//! Branches: what a store keeps of a session that was continued in two stores at once.
//!
//! Both continuations survive. A store keeps the first one that it has under the session's own id,
//! and every other one as a fork. Such a fork begins with an opening that is derived from the first
//! entry of the branch: the log without these openings is the log of the store where it was
//! written, byte for byte, so that any two stores can compare their branches by hash.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Body, Entry, EntryError, Forked, HASH_FIELD, HASH_TAIL, Hash, Head, NewEntry, Origin, Relation,
    after_seq_name,
};
use crate::id::{EntryId, Seq, SessionId, derived};

/// Returns the id of the fork that keeps a branch of session `root`, from the hash of the branch's
/// first own entry.
pub fn branch_id(root: SessionId, first: &Hash) -> SessionId {
    SessionId::new(derived(&["branch", &root.to_string(), &first.to_string()]))
}

impl Entry {
    /// Returns the opening of the fork that keeps a branch of session `root`. `from` is the entry
    /// that the fork continues, `first` the first entry of the branch.
    pub fn open_branch(root: SessionId, from: Origin, first: &Entry) -> Result<Entry, EntryError> {
        let session = branch_id(root, &first.hash);
        let parent = Head {
            seq: from.seq,
            hash: from.hash,
        };
        let opening = Forked {
            session,
            from,
            relation: Relation::Conflict,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        };
        let new = NewEntry {
            id: EntryId::new(session.uuid()),
            at: first.at,
            body: Body::Forked(opening),
            redacted: BTreeMap::new(),
            author: first.author.clone(),
        };
        Entry::chain_one(&parent, 0, new)
    }

    /// Returns the opening if [`Entry::open_branch`] made this entry. Other forks have an opening
    /// with an id of its own.
    pub fn opened_branch(&self) -> Option<&Forked> {
        match &self.body {
            Body::Forked(forked)
                if forked.relation == Relation::Conflict
                    && self.id.uuid() == forked.session.uuid() =>
            {
                Some(forked)
            }
            _ => None,
        }
    }

    /// Returns the entry at another place: the next after `parent`. All other bytes stay, with
    /// fields that only a later version knows, except that `place_of` translates the sequence
    /// numbers of earlier entries that the body refers to.
    pub fn moved(&self, parent: &Head, place_of: impl Fn(Seq) -> Seq) -> Result<Entry, EntryError> {
        let seq = parent.seq.next();
        let content = &self.line[..self.line.len() - HASH_TAIL];
        let misplaced = || EntryError::Unreadable {
            reason: "its sequence number is not where every entry has it".into(),
        };
        let number = after_seq_name(content.as_bytes()).ok_or_else(misplaced)?;
        let (before, number) = content.split_at(content.len() - number.len());
        let rest = number.strip_prefix(self.seq.to_string().as_str());
        let rest = rest.ok_or_else(misplaced)?;
        let content = format!("{before}{seq}{rest}");
        let content = match self.body {
            Body::Undone(_) | Body::Compacted(_) | Body::Repaired(_) => {
                let mut line = with_references(format!("{content}}}"), place_of);
                line.pop(); // removes the closing brace
                line
            }
            _ => content,
        };
        let hash = Hash::of(&parent.hash, content.as_bytes());
        Entry::decode(format!("{content}{HASH_FIELD}{hash}\"}}").as_bytes())
    }
}

/// Translates the sequence numbers that an entry refers to. `line` is a JSON object with its fields.
pub(crate) fn with_references(line: String, place_of: impl Fn(Seq) -> Seq) -> String {
    let Ok(mut fields) = serde_json::from_str::<Value>(&line) else {
        return line;
    };
    // Another writer may have formatted the line in another way: then its bytes are kept.
    let written = fields.to_string();
    if written != line {
        return line;
    }
    let moved = |value: &mut Value| {
        if let Some(seq) = value.as_u64() {
            *value = place_of(Seq(seq)).0.into();
        }
    };
    for name in ["change", "upto"] {
        fields.get_mut(name).into_iter().for_each(moved);
    }
    for name in ["lost", "doubtful"] {
        let listed = fields.get_mut(name).and_then(Value::as_array_mut);
        listed.into_iter().flatten().for_each(moved);
    }
    fields.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Author, Lost, Touched, Undone};

    fn new(n: u128, body: Body) -> NewEntry {
        NewEntry {
            id: EntryId::new(uuid::Uuid::from_u128(n)),
            at: "2026-11-17T06:00:00Z".parse().unwrap(),
            body,
            redacted: BTreeMap::new(),
            author: Some(Author {
                name: "ada".into(),
                host: "desk".into(),
            }),
        }
    }

    fn operation() -> EntryId {
        EntryId::new(uuid::Uuid::from_u128(99))
    }

    #[test]
    fn a_moved_entry_comes_back_byte_for_byte() {
        let root = SessionId::new(uuid::Uuid::from_u128(7));
        let trashed = Body::Trashed(Touched {
            operation: operation(),
        });
        let undone = Body::Undone(Undone {
            change: Seq(2),
            operation: operation(),
        });
        let lost = Body::Lost(Lost { reason: "x".into() });
        let log = Entry::chain(
            &Head::START,
            vec![new(1, lost), new(2, trashed), new(3, undone)],
        )
        .unwrap();
        let from = Origin {
            id: root,
            seq: log[0].seq,
            hash: log[0].hash,
        };
        let opening = Entry::open_branch(root, from, &log[1]).unwrap();
        assert!(opening.follows(&log[0].head()));
        assert_eq!(
            opening.opened_branch().unwrap().session,
            branch_id(root, &log[1].hash)
        );
        assert_eq!((&opening.author, opening.at), (&log[1].author, log[1].at));
        let later = |seq: Seq| if seq > Seq(1) { seq.next() } else { seq };
        let earlier = |seq: Seq| if seq > Seq(1) { seq.back(1) } else { seq };
        let (mut there, mut back) = (opening.head(), log[0].head());
        for entry in &log[1..] {
            let moved = entry.moved(&there, later).unwrap();
            assert!(moved.follows(&there) && moved.then == entry.then);
            if let Body::Undone(undone) = &moved.body {
                assert_eq!(undone.change, Seq(3));
            }
            let again = moved.moved(&back, earlier).unwrap();
            assert_eq!(again.line(), entry.line());
            (there, back) = (moved.head(), again.head());
        }
    }

    #[test]
    fn fields_of_later_versions_stay() {
        let head = Head::START;
        let content = r#"{"v":1,"seq":1,"id":"00000000-0000-0000-0000-000000000001","at":"2026-11-17T06:00:00Z","type":"sung","notes":[1.50,"é"]"#;
        let hash = Hash::of(&head.hash, content.as_bytes());
        let line = format!("{content}{HASH_FIELD}{hash}\"}}");
        let entry = Entry::decode(line.as_bytes()).unwrap();
        let parent = Head {
            seq: Seq(41),
            hash: Hash::of_text("x"),
        };
        let moved = entry.moved(&parent, |seq| seq).unwrap();
        assert!(moved.follows(&parent));
        assert!(moved.line().starts_with("{\"v\":1,\"seq\":42,\"id\":"));
        assert!(moved.line().contains(r#""type":"sung","notes":[1.50,"é"]"#));
        assert_eq!(moved.moved(&head, |seq| seq).unwrap().line(), line);
    }
}
