use super::*;

const COMMIT: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

fn git(folder: &Path, args: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// Inspects a folder as a command there would, and records it.
fn look(folder: &Path, known: &Path) -> Project {
    let folders = Folders::read(known).unwrap_or_default();
    // The folder of `known` stands for the home: what is above it does not count.
    let project = Project::of(folder, known.parent(), &folders);
    folders.write(known, &project.record()).unwrap();
    project
}

#[test]
fn projects_have_short_names() {
    let check = |id: &str, folder: Option<&str>, expected: &str| {
        assert_eq!(name(id, folder), expected);
    };
    check("git:github.com/ann/parser", None, "ann/parser");
    check(&format!("git:{COMMIT}"), Some("/home/ann/notes"), "notes");
    check(&format!("git:{COMMIT}"), None, "4b825dc6");
    check("dir:/home/ann/notes", None, "/home/ann/notes");
    check("other", None, "other");
}

#[test]
fn what_is_recorded_already_is_not_written_again() {
    let place = tempfile::tempdir().unwrap();
    let known = place.path().join("projects.json");
    let now = Project::of(place.path(), None, &Folders::default()).record();
    let written = || {
        Folders::default().write(&known, &now).unwrap();
        fs::metadata(&known).unwrap().modified().unwrap()
    };
    assert_eq!(written(), written());
}

#[test]
fn a_folder_keeps_every_identity_that_it_has_had() {
    let place = tempfile::tempdir().unwrap();
    let known = place.path().join("projects.json");
    let folder = place.path().join("talk");
    fs::create_dir(&folder).unwrap();
    let mut had = vec![look(&folder, &known).id];
    assert_eq!(had, [format!("dir:{}", folder.display())]);
    git(&folder, &["init", "-q"]);
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "one"]);
    had.push(look(&folder, &known).id);
    git(
        &folder,
        &["remote", "add", "origin", "git@h.org:a/talk.git"],
    );
    had.push(look(&folder, &known).id);
    git(
        &folder,
        &["remote", "set-url", "origin", "https://new.org/talk"],
    );
    had.push(look(&folder, &known).id);
    had.dedup();
    assert_eq!(had.len(), 4, "{had:?}");
    let moved = place.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    let now = look(&moved, &known);
    for id in &had {
        assert!(now.ids.contains(id), "{id} of {:?}", now.ids);
    }
    fs::remove_dir_all(moved.join(".git")).unwrap();
    let bare = look(&moved, &known);
    for id in &had {
        assert!(bare.ids.contains(id), "{id} of {:?}", bare.ids);
    }
}

#[test]
fn clones_and_work_trees_are_one_project() {
    let place = tempfile::tempdir().unwrap();
    let known = place.path().join("projects.json");
    let [one, two] = ["one", "two"].map(|name| place.path().join(name));
    for (folder, url) in [
        (&one, "https://h.org/a/talk"),
        (&two, "git@h.org:a/talk.git"),
    ] {
        fs::create_dir(folder).unwrap();
        look(folder, &known);
        git(folder, &["init", "-q"]);
        git(folder, &["remote", "add", "origin", url]);
        look(folder, &known);
    }
    let second = look(&two, &known);
    assert!(second.ids.contains(&format!("dir:{}", one.display())));
    git(&one, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&one, &["worktree", "add", "-q", "../tree"]);
    let tree = look(&place.path().join("tree"), &known);
    assert!(tree.ids.contains(&format!("dir:{}", one.display())));
}

#[test]
fn unrelated_folders_stay_apart() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let known = home.join("projects.json");
    git(&home, &["init", "-q"]);
    let [one, two] = ["one", "two"].map(|name| home.join(name));
    let at = |folder: &Path| {
        let folders = Folders::read(&known).unwrap_or_default();
        let project = Project::of(folder, Some(&home), &folders);
        folders.write(&known, &project.record()).unwrap();
        project
    };
    for folder in [&one, &two] {
        fs::create_dir(folder).unwrap();
        at(folder);
    }
    let ids = |folder: &Path| at(folder).ids;
    assert_eq!(
        ids(&one),
        ProjectIds::from(format!("dir:{}", one.display()))
    );
    // A remote without an address does not count.
    for folder in [&one, &two] {
        git(folder, &["init", "-q"]);
        let config = "[remote \"origin\"]\n\turl =\n\tfetch = x\n";
        fs::write(folder.join(".git/config"), config).unwrap();
    }
    assert_eq!(
        ids(&one),
        ProjectIds::from(format!("dir:{}", one.display()))
    );
    assert_eq!(
        ids(&two),
        ProjectIds::from(format!("dir:{}", two.display()))
    );
    // Two projects from one template have remotes of their own.
    fs::write(
        two.join(".git/config"),
        "[remote \"origin\"]\n\turl = https://h.org/t\n",
    )
    .unwrap();
    at(&two);
    fs::write(
        one.join(".git/config"),
        "[remote \"origin\"]\n\turl = https://h.org/t\n",
    )
    .unwrap();
    at(&one);
    fs::write(
        one.join(".git/config"),
        "[remote \"origin\"]\n\turl = https://h.org/one\n",
    )
    .unwrap();
    at(&one);
    assert!(!ids(&two).contains("git:h.org/one"));
}

#[test]
fn what_sessions_say_stands_in_for_the_file() {
    let id = tertulia_core::id::SessionId::new(uuid::Uuid::from_u128(1));
    let mut session = tertulia_core::session::SessionMeta::of(id, &[]);
    session.project_ids = ["git:old.org/x", &format!("git:{COMMIT}"), "dir:/w/talk"]
        .map(str::to_owned)
        .to_vec();
    let folders = Folders::of_sessions([&session]);
    let now = FolderRecord {
        folder: "/w/talk".to_owned(),
        remote: Some("git:new.org/x".to_owned()),
        root: Some(format!("git:{COMMIT}")),
        ..FolderRecord::default()
    };
    assert!(folders.find(&now).unwrap().ids.contains("git:old.org/x"));
}

#[test]
fn a_folder_that_is_gone_is_known_by_its_repository() {
    let record = |folder: &str, remote: Option<&str>, moved_from: &[&str]| FolderRecord {
        folder: folder.to_owned(),
        remote: remote.map(str::to_owned),
        ids: [format!("dir:{folder}")].into(),
        moved_from: moved_from.iter().map(|path| (*path).to_owned()).collect(),
        ..FolderRecord::default()
    };
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("projects.json");
    for record in [
        record("/h", Some("git:h.org/dotfiles"), &[]),
        record("/h/me/notes", None, &[]),
        record("/h/me/new", Some("git:h.org/talk"), &["/h/me/old"]),
    ] {
        Folders::default().write(&file, &record).unwrap();
    }
    let known = Folders::read(&file).unwrap();
    let check = |folder: &str, expected: Option<&str>| {
        let found = known.of_gone(Path::new(folder), Some(Path::new("/h/me")));
        assert_eq!(found.map(FolderRecord::id).as_deref(), expected, "{folder}");
    };
    check("/h/me/new", Some("git:h.org/talk"));
    check("/h/me/old/src/deep", Some("git:h.org/talk"));
    check("/h/me/notes", Some("dir:/h/me/notes"));
    check("/h/me/notes/below", None);
    check("/h/me/other", None);
    check("/h", Some("git:h.org/dotfiles"));
}
