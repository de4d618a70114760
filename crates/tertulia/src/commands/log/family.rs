//! The family of a session as a list of members, not as nested values: chains of forks can be
//! thousands of sessions deep, and a call per generation would overflow the stack.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_formats::json;

/// Largest number of generations in a document: readers of JSON limit how deep it is nested.
const DEEPEST: usize = 50;
/// Generations above the session that a document is about, if it cannot have all.
const ABOVE: usize = 20;
/// Largest number of sessions in a document.
const MOST: usize = 1000;

/// What a session was made from, and when.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub created_at: Timestamp,
    pub parent: Option<SessionId>,
    /// The second parent of a merge.
    pub merged: Option<SessionId>,
}

/// Which sessions come from which.
#[derive(Debug, Default)]
pub struct Links {
    links: HashMap<SessionId, Link>,
    forks: HashMap<SessionId, Vec<SessionId>>,
}

/// A session in a tree of its family. Its forks come after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<T> {
    pub session: T,
    /// Place of the session that it was made from in the list.
    pub above: Option<usize>,
    /// Number of ancestors in the tree.
    pub depth: usize,
    /// Whether it is a merge whose forks are shown with its first parent.
    pub repeated: bool,
}

impl Links {
    pub fn new(all: impl IntoIterator<Item = (SessionId, Link)>) -> Links {
        let mut known = Links {
            links: all.into_iter().collect(),
            forks: HashMap::new(),
        };
        for (id, link) in &known.links {
            let parents: HashSet<SessionId> = link.parent.into_iter().chain(link.merged).collect();
            for parent in parents {
                known.forks.entry(parent).or_default().push(*id);
            }
        }
        for forks in known.forks.values_mut() {
            forks.sort_by_key(|id| (known.links.get(id).map(|link| link.created_at), *id));
        }
        known
    }

    /// Returns the tree of a session, and those of sessions that were merged with members of it.
    pub fn trees(&self, asked: SessionId) -> Vec<Vec<Member<SessionId>>> {
        let mut seen = HashSet::new();
        let mut trees = Vec::new();
        let mut waiting = vec![asked];
        while let Some(member) = waiting.pop() {
            if seen.contains(&member) {
                continue;
            }
            let tree = self.tree(self.oldest(member), &mut seen);
            for member in &tree {
                let link = self.links.get(&member.session);
                if let Some((link, merged)) = link.and_then(|link| Some((link, link.merged?))) {
                    let parents = [Some(merged), link.parent].into_iter().flatten();
                    waiting.extend(parents.filter(|parent| self.links.contains_key(parent)));
                }
            }
            trees.push(tree);
        }
        trees
    }

    /// Follows parents to the root, or up to a session whose parent is not in this store.
    fn oldest(&self, mut id: SessionId) -> SessionId {
        let mut seen = HashSet::from([id]);
        while let Some(parent) = self.links.get(&id).and_then(|link| link.parent)
            && self.links.contains_key(&parent)
            // Guard against cycles, which imported data may contain.
            && seen.insert(parent)
        {
            id = parent;
        }
        id
    }

    fn tree(&self, root: SessionId, seen: &mut HashSet<SessionId>) -> Vec<Member<SessionId>> {
        let mut tree: Vec<Member<SessionId>> = Vec::new();
        let mut waiting = vec![(root, None)];
        while let Some((session, above)) = waiting.pop() {
            let parent: Option<&Member<SessionId>> = above.and_then(|at: usize| tree.get(at));
            let repeated = parent.is_some_and(|parent| self.is_repeated(session, parent.session));
            let depth = parent.map_or(0, |parent| parent.depth + 1);
            let at = tree.len();
            tree.push(Member {
                session,
                above,
                depth,
                repeated,
            });
            // Guard against cycles, which imported data may contain.
            if !repeated && seen.insert(session) {
                let forks = self.forks.get(&session).into_iter().flatten();
                waiting.extend(forks.rev().map(|fork| (*fork, Some(at))));
            }
        }
        tree
    }

    /// Returns true for a merge below its second parent, if its first parent is in this store, too.
    fn is_repeated(&self, session: SessionId, above: SessionId) -> bool {
        let first = self.links.get(&session).and_then(|link| link.parent);
        first.is_some_and(|first| first != above && self.links.contains_key(&first))
    }
}

/// Returns a tree as a document: sessions with their forks. Of a large family it has the part around
/// the session `asked`, and says how many sessions are left out, above and below.
pub fn document(tree: &[Member<Row>], asked: SessionId) -> Value {
    let sizes = sizes(tree);
    let top = top_of(tree, asked);
    let Some(first) = tree.get(top) else {
        return json!({});
    };
    let end = top + sizes[top];
    let mut objects: Vec<Option<Value>> = vec![None; end - top];
    let mut taken = HashSet::new();
    for (at, member) in tree.iter().enumerate().take(end).skip(top) {
        let is_below = member.above.is_some_and(|above| taken.contains(&above));
        let is_near = member.depth - first.depth < DEEPEST && taken.len() < MOST;
        if at == top || (is_below && is_near) {
            taken.insert(at);
        }
    }
    let mut forks: HashMap<usize, Vec<Value>> = HashMap::new();
    let mut left_out: HashMap<usize, usize> = HashMap::new();
    for at in (top..end).rev() {
        let member = &tree[at];
        let above = member.above.filter(|above| taken.contains(above));
        if !taken.contains(&at) {
            if let Some(above) = above {
                *left_out.entry(above).or_default() += sizes[at];
            }
            continue;
        }
        let mut session = json::session(&member.session);
        let mut below = forks.remove(&at).unwrap_or_default();
        below.reverse();
        session.insert("forks".into(), below.into());
        if let Some(count) = left_out.remove(&at) {
            session.insert("left_out".into(), count.into());
        }
        if member.repeated {
            session.insert("repeated".into(), true.into());
        }
        if at == top && sizes[top] < tree.len() {
            let count = tree.len() - sizes[top];
            session.insert("left_out_above".into(), count.into());
        }
        match above.filter(|_| at > top) {
            Some(above) => forks.entry(above).or_default().push(json!(session)),
            None => objects[at - top] = Some(json!(session)),
        }
    }
    objects.swap_remove(0).unwrap_or_default()
}

/// Returns the number of members in the subtree of each.
fn sizes<T>(tree: &[Member<T>]) -> Vec<usize> {
    let mut sizes = vec![1; tree.len()];
    for at in (0..tree.len()).rev() {
        if let Some(above) = tree[at].above {
            sizes[above] += sizes[at];
        }
    }
    sizes
}

/// Returns where a document begins: at the root, or some generations above the session `asked` if it
/// is too deep.
fn top_of(tree: &[Member<Row>], asked: SessionId) -> usize {
    let is_it = |member: &Member<Row>| member.session.meta.id == asked && !member.repeated;
    let place = tree.iter().position(is_it);
    let Some(mut at) = place.filter(|at| tree[*at].depth >= DEEPEST) else {
        return 0;
    };
    for _ in 0..ABOVE {
        at = tree[at].above.unwrap_or(at);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(n: u128) -> SessionId {
        SessionId::new(Uuid::from_u128(n))
    }

    fn link(parent: Option<u128>, merged: Option<u128>) -> Link {
        Link {
            created_at: Timestamp::UNIX_EPOCH,
            parent: parent.map(id),
            merged: merged.map(id),
        }
    }

    fn chain(length: u128) -> Links {
        let forks = (2..=length).map(|n| (id(n), link(Some(n - 1), None)));
        Links::new(std::iter::once((id(1), link(None, None))).chain(forks))
    }

    #[test]
    fn a_long_chain_of_forks_is_one_tree() {
        let trees = chain(20_000).trees(id(700));
        assert_eq!(trees.len(), 1);
        assert_eq!(trees[0].len(), 20_000);
        let last = trees[0].last().unwrap();
        assert_eq!((last.session, last.depth), (id(20_000), 19_999));
    }

    #[test]
    fn a_circle_ends() {
        let links = [(id(1), link(Some(2), None)), (id(2), link(Some(1), None))];
        let trees = Links::new(links).trees(id(1));
        assert_eq!(trees.len(), 1);
        assert_eq!(trees[0].len(), 3);
    }

    fn with_rows(tree: &[Member<SessionId>]) -> Vec<Member<Row>> {
        let row = |member: &Member<SessionId>| Member {
            session: Row {
                meta: tertulia_core::session::SessionMeta::blank(member.session),
                open: false,
            },
            above: member.above,
            depth: member.depth,
            repeated: member.repeated,
        };
        tree.iter().map(row).collect()
    }

    #[test]
    fn a_document_has_the_part_around_the_session() {
        let tree = with_rows(&chain(5000).trees(id(3000))[0]);
        let found = document(&tree, id(3000));
        let size = found.to_string().len();
        assert!(size < 200_000, "{size}");
        assert_eq!(found["id"], id(3000 - 20).to_string());
        assert_eq!(found["left_out_above"], 2979);
        let mut last = &found;
        let mut depth = 1;
        while last["forks"].get(0).is_some() {
            last = &last["forks"][0];
            depth += 1;
        }
        assert_eq!(depth, DEEPEST);
        assert_eq!(last["left_out"], 5000 - 2979 - DEEPEST);
    }

    #[test]
    fn a_small_family_is_complete() {
        let links = [
            (id(1), link(None, None)),
            (id(2), link(Some(1), None)),
            (id(3), link(Some(1), None)),
            (id(4), link(Some(2), Some(3))),
        ];
        let trees = Links::new(links).trees(id(4));
        assert_eq!(trees.len(), 1);
        let found = document(&with_rows(&trees[0]), id(4));
        assert_eq!(found["forks"].as_array().unwrap().len(), 2);
        assert_eq!(found["forks"][0]["forks"][0]["id"], id(4).to_string());
        assert_eq!(found["forks"][1]["forks"][0]["repeated"], true);
        assert!(found.get("left_out_above").is_none());
    }
}
