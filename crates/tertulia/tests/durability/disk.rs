//! Model of the strictest permitted disk: a file has what was written before its last sync, a
//! folder the names that it had at its last sync. Replays a trace.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::trace::{Call, Step, is_below};
use super::world::Chance;

/// A power cut tears writes at sector boundaries.
const SECTOR: usize = 512;

/// A change of a file or folder that is not synced yet.
#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
    Name(String, usize),
    Unname(String),
    /// Atomic rename from one name to another.
    Rename(String, String, usize),
}

#[derive(Clone, Debug)]
enum Content {
    File(Vec<u8>),
    Folder(BTreeMap<String, usize>),
}

/// A file or folder: as the running system sees it, as it is on disk, and the difference.
#[derive(Clone, Debug)]
struct Node {
    now: Content,
    safe: Content,
    unsynced: Vec<(u64, Change)>,
}

#[derive(Debug)]
struct Handle {
    node: usize,
    appends: bool,
    at: usize,
}

/// A sync of a file by the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Name of the file.
    pub name: String,
    /// First and last offset of the data that it made durable, if any.
    pub covered: Option<(usize, usize)>,
}

/// Model of the disk below one folder. Other files are ignored.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    work: PathBuf,
    nodes: Vec<Node>,
    handles: HashMap<i32, Handle>,
    clock: u64,
    syncing: HashMap<u64, (usize, u64)>,
    pub syncs: Vec<Synced>,
}

impl Disk {
    /// Creates a model in which everything below the folder is durable.
    pub fn of(root: &Path, work: &Path) -> Disk {
        let mut disk = Disk {
            root: root.to_owned(),
            work: work.to_owned(),
            nodes: Vec::new(),
            handles: HashMap::new(),
            clock: 0,
            syncing: HashMap::new(),
            syncs: Vec::new(),
        };
        disk.take_in(root);
        disk
    }

    fn take_in(&mut self, path: &Path) -> usize {
        let node = self.make(Content::File(Vec::new()));
        let content = if path.is_dir() {
            let mut names = BTreeMap::new();
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                names.insert(name, self.take_in(&entry.path()));
            }
            Content::Folder(names)
        } else {
            Content::File(fs::read(path).unwrap())
        };
        self.nodes[node].now = content.clone();
        self.nodes[node].safe = content;
        node
    }

    fn make(&mut self, content: Content) -> usize {
        self.nodes.push(Node {
            now: content.clone(),
            safe: content,
            unsynced: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// Applies one step of the trace.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Says(..) => {}
            Step::SyncBegins(serial, fd) => {
                if let Some(handle) = self.handles.get(fd) {
                    self.syncing.insert(*serial, (handle.node, self.clock));
                }
            }
            Step::SyncEnds(serial) => {
                if let Some((node, before)) = self.syncing.remove(serial) {
                    self.sync(node, before);
                }
            }
            Step::Done(call) => self.call(call),
        }
    }

    fn sync(&mut self, node: usize, before: u64) {
        let mut covered: Option<(usize, usize)> = None;
        let found = &mut self.nodes[node];
        for (at, change) in std::mem::take(&mut found.unsynced) {
            if at > before {
                found.unsynced.push((at, change));
                continue;
            }
            if let Change::Write(at, bytes) = &change {
                let (first, last) = covered.unwrap_or((*at, 0));
                covered = Some((first.min(*at), last.max(at + bytes.len())));
            }
            apply(&mut found.safe, &change);
        }
        if let Some(name) = self.name_of(node) {
            self.syncs.push(Synced { name, covered });
        }
    }

    fn change(&mut self, node: usize, change: Change) {
        self.clock += 1;
        apply(&mut self.nodes[node].now, &change);
        self.nodes[node].unsynced.push((self.clock, change));
    }

    fn call(&mut self, call: &Call) {
        match call.name.as_str() {
            "openat" => self.open(call),
            "close" => {
                self.handles.remove(&call.fd());
            }
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.write(call),
            "ftruncate" => {
                if let Some(node) = self.handle(call) {
                    self.change(node, Change::Cut(call.number_from_end(0)));
                }
            }
            // Allocates space without content: the file is longer, and the new part reads as zeros.
            "fallocate" => {
                if let Some(node) = self.handle(call)
                    && let Content::File(content) = &self.nodes[node].now
                {
                    let end = call.number_from_end(1) + call.number_from_end(0);
                    let size = content.len().max(end);
                    self.change(node, Change::Cut(size));
                }
            }
            "mkdir" | "mkdirat" => {
                if let Some((folder, name)) = self.locate(call, 0) {
                    let made = self.make(Content::Folder(BTreeMap::new()));
                    self.change(folder, Change::Name(name, made));
                }
            }
            "unlink" | "unlinkat" | "rmdir" => {
                if let Some((folder, name)) = self.locate(call, 0) {
                    self.change(folder, Change::Unname(name));
                }
            }
            "link" | "linkat" => {
                if let Some(((_, _, node), (folder, name))) = self.both(call) {
                    self.change(folder, Change::Name(name, node));
                }
            }
            "rename" | "renameat" | "renameat2" => {
                if let Some(((from, old, node), (to, new))) = self.both(call) {
                    assert_eq!(from, to, "a rename between folders is not simulated");
                    self.change(to, Change::Rename(old, new, node));
                }
            }
            "mmap" => {
                let mapped = call.writable_map().and_then(|fd| self.handles.get(&fd));
                let name = mapped.and_then(|handle| self.name_of(handle.node));
                assert!(
                    name.as_ref().is_none_or(|name| name.ends_with("-shm")),
                    "{name:?} is written through memory, which is not simulated"
                );
            }
            _ => {
                let touches = |path: &String| is_below(path, &self.root);
                let paths =
                    call.paths().iter().any(touches) || call.annotated().iter().any(touches);
                assert!(!paths, "{} is not simulated: {call:?}", call.name);
            }
        }
    }

    fn open(&mut self, call: &Call) {
        let fd = i32::try_from(call.result).unwrap();
        self.handles.remove(&fd);
        let path = self.absolute(call, 0);
        let node = if path == self.root {
            Some(0)
        } else {
            let Some((folder, name)) = self.locate(call, 0) else {
                return;
            };
            let found = self.child(folder, &name);
            if found.is_none() && call.says("O_CREAT") {
                let made = self.make(Content::File(Vec::new()));
                self.change(folder, Change::Name(name, made));
                Some(made)
            } else {
                found
            }
        };
        let node = node.unwrap_or_else(|| panic!("{} is not on the disk", path.display()));
        if call.says("O_TRUNC") {
            self.change(node, Change::Cut(0));
        }
        let appends = call.says("O_APPEND");
        let at = 0;
        self.handles.insert(fd, Handle { node, appends, at });
    }

    fn write(&mut self, call: &Call) {
        let Some(node) = self.handle(call) else {
            return;
        };
        let bytes = call.data();
        let handle = &self.handles[&call.fd()];
        let at = match (call.name.as_str(), &self.nodes[node].now) {
            ("pwrite64" | "pwritev", _) => call.number_from_end(0),
            ("pwritev2", _) => call.number_from_end(1),
            (_, Content::File(content)) if handle.appends => content.len(),
            _ => handle.at,
        };
        if matches!(call.name.as_str(), "write" | "writev")
            && let Some(handle) = self.handles.get_mut(&call.fd())
        {
            handle.at = at + bytes.len();
        }
        self.change(node, Change::Write(at, bytes));
    }

    /// Returns the open file of a call, if it is on this disk.
    fn handle(&self, call: &Call) -> Option<usize> {
        let found = self.handles.get(&call.fd()).map(|handle| handle.node);
        let real = call
            .annotated()
            .is_some_and(|path| is_below(&path, &self.root));
        assert_eq!(found.is_some(), real, "a file was opened unseen: {call:?}");
        found
    }

    fn absolute(&self, call: &Call, which: usize) -> PathBuf {
        let path = PathBuf::from(&call.paths()[which]);
        if path.is_relative() {
            assert!(
                !call.name.ends_with("at") || call.fd() == -100,
                "a path below an open folder is not simulated: {call:?}"
            );
        }
        self.work.join(path)
    }

    /// Returns the folder and name of a path argument, if it is on this disk.
    fn locate(&self, call: &Call, which: usize) -> Option<(usize, String)> {
        let path = self.absolute(call, which);
        let inside = path.strip_prefix(&self.root).ok()?;
        let name = inside.file_name()?.to_str()?.to_owned();
        let mut folder = 0;
        for part in inside.parent()?.iter() {
            folder = self.child(folder, part.to_str()?)?;
        }
        Some((folder, name))
    }

    #[expect(clippy::type_complexity, reason = "two places in a tree")]
    fn both(&self, call: &Call) -> Option<((usize, String, usize), (usize, String))> {
        let (folder, name) = self.locate(call, 0)?;
        let node = self.child(folder, &name)?;
        Some(((folder, name, node), self.locate(call, 1)?))
    }

    fn child(&self, folder: usize, name: &str) -> Option<usize> {
        match &self.nodes[folder].now {
            Content::Folder(names) => names.get(name).copied(),
            Content::File(_) => None,
        }
    }

    fn name_of(&self, node: usize) -> Option<String> {
        self.nodes.iter().find_map(|folder| match &folder.now {
            Content::Folder(names) => names
                .iter()
                .find_map(|(name, found)| (*found == node).then(|| name.clone())),
            Content::File(_) => None,
        })
    }

    /// Returns the matching files that have unsynced bytes.
    pub fn unsynced_files(&self, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let unsynced = |node: &usize| !self.nodes[*node].unsynced.is_empty();
        let nodes = (0..self.nodes.len()).filter(unsynced);
        nodes
            .filter(|node| matches!(self.nodes[*node].now, Content::File(_)))
            .filter_map(|node| self.name_of(node))
            .filter(|name| is_meant(name))
            .collect()
    }

    /// Returns new names whose folder has not been synced since.
    pub fn unsynced_names(&self) -> Vec<String> {
        let changes = self.nodes.iter().flat_map(|node| &node.unsynced);
        changes
            .filter_map(|(_, change)| match change {
                Change::Name(name, _) | Change::Rename(_, name, _) => Some(name.clone()),
                _ => None,
            })
            .collect()
    }

    /// Writes the state after a kill: everything that was written, synced or not.
    pub fn after_kill(&self, into: &Path) {
        let now: Vec<Content> = self.nodes.iter().map(|node| node.now.clone()).collect();
        lay_down(&now, 0, into, &mut HashMap::new());
    }

    /// Writes the state after a power cut: everything durable, and a random part of the rest.
    pub fn after_power_cut(&self, into: &Path, mut luck: Option<&mut Chance>) {
        let survived: Vec<Content> = self
            .nodes
            .iter()
            .map(|node| survivor(node, luck.as_deref_mut()))
            .collect();
        let mut made = HashMap::new();
        lay_down(&survived, 0, into, &mut made);
    }
}

fn lay_down(survived: &[Content], node: usize, path: &Path, made: &mut HashMap<usize, PathBuf>) {
    match &survived[node] {
        Content::File(bytes) => match made.get(&node) {
            Some(first) => fs::hard_link(first, path).unwrap(),
            None => {
                fs::write(path, bytes).unwrap();
                made.insert(node, path.to_owned());
            }
        },
        Content::Folder(names) => {
            fs::create_dir(path).unwrap();
            for (name, child) in names {
                // Shared memory does not survive.
                if !name.ends_with("-shm") {
                    lay_down(survived, *child, &path.join(name), made);
                }
            }
        }
    }
}

fn survivor(node: &Node, luck: Option<&mut Chance>) -> Content {
    let mut content = node.safe.clone();
    let Some(luck) = luck else {
        return content;
    };
    for (_, change) in &node.unsynced {
        let Change::Write(at, bytes) = change else {
            if luck.coin() {
                apply(&mut content, change);
            }
            continue;
        };
        let mut from = 0;
        while from < bytes.len() {
            let to = bytes.len().min(from + SECTOR - (at + from) % SECTOR);
            if luck.coin() {
                let piece = Change::Write(at + from, bytes[from..to].to_vec());
                apply(&mut content, &piece);
            }
            from = to;
        }
    }
    content
}

fn apply(content: &mut Content, change: &Change) {
    match (content, change) {
        (Content::File(content), Change::Write(at, bytes)) => {
            let end = at + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(bytes);
        }
        (Content::File(content), Change::Cut(size)) => content.resize(*size, 0),
        (Content::Folder(names), Change::Name(name, node)) => {
            names.insert(name.clone(), *node);
        }
        (Content::Folder(names), Change::Unname(name)) => {
            names.remove(name);
        }
        (Content::Folder(names), Change::Rename(old, new, node)) => {
            names.remove(old);
            names.insert(new.clone(), *node);
        }
        (content, change) => panic!("{change:?} on {content:?}"),
    }
}

#[test]
fn only_what_was_synced_survives_and_chance_decides_on_the_rest() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("home")).unwrap();
    let mut disk = Disk::of(&root.path().join("home"), root.path());
    let file = disk.make(Content::File(Vec::new()));
    disk.change(0, Change::Name("a".into(), file));
    disk.change(file, Change::Write(0, vec![b'1'; 4]));
    let clock = disk.clock;
    disk.sync(file, clock);
    let left = |disk: &Disk, luck: Option<&mut Chance>| {
        let to = tempfile::tempdir().unwrap();
        disk.after_power_cut(&to.path().join("x"), luck);
        fs::read(to.path().join("x/a")).ok()
    };
    assert_eq!(left(&disk, None), None, "its folder was not synced");
    disk.sync(0, clock);
    disk.change(file, Change::Write(4, vec![b'2'; 2000]));
    assert_eq!(left(&disk, None), Some(b"1111".to_vec()));
    let torn = |seed| left(&disk, Some(&mut Chance::new(seed))).unwrap();
    let sizes: std::collections::BTreeSet<usize> = (0..40).map(|seed| torn(seed).len()).collect();
    assert!(sizes.len() >= 4, "{sizes:?}");
    assert!((0..40).all(|seed| torn(seed).starts_with(b"1111")));
    assert_eq!(disk.unsynced_files(|name| name == "a"), ["a"]);
}
