//! Completion candidates.

use std::fs;
use std::time::Duration;

use super::*;

fn complete(world: &World, asked: Asked) -> Vec<Candidate> {
    held!(world.answer(Request::Complete(asked.clone())), Answer::Complete(of, candidates) => {
        assert_eq!(of, asked);
        candidates.unwrap()
    })
}

fn files(world: &World, written: &str) -> Vec<String> {
    // A long time limit, so that the result does not depend on the speed of the test.
    let candidates = super::super::files::below(world.cwd(), written, Duration::from_secs(600));
    for candidate in &candidates {
        assert_eq!(candidate.goes_on, candidate.insert.ends_with('/'));
    }
    candidates
        .into_iter()
        .map(|candidate| candidate.insert)
        .collect()
}

fn put(world: &World, names: &[&str]) {
    for name in names {
        let path = world.cwd().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
}

#[test]
fn files_are_named_as_they_would_be_written() {
    let world = World::new("memory");
    put(
        &world,
        &[
            "a.md",
            "src/main.rs",
            "src/deep/er/x.rs",
            "out/big.o",
            ".git/config",
            ".env",
            "né 漢.md",
            "bad\nname",
        ],
    );
    fs::write(world.cwd().join(".gitignore"), "out/\n").unwrap();
    std::os::unix::fs::symlink("src", world.cwd().join("link")).unwrap();
    assert_eq!(
        files(&world, ""),
        [
            "a.md",
            "link/",
            "né 漢.md",
            "src/",
            "src/deep/",
            "src/deep/er/",
            "src/main.rs",
            "src/deep/er/x.rs"
        ]
    );
    assert_eq!(
        files(&world, "src/ma"),
        [
            "src/deep/",
            "src/main.rs",
            "src/deep/er/",
            "src/deep/er/x.rs"
        ]
    );
    assert_eq!(files(&world, "./src/deep/")[0], "./src/deep/er/");
    // Parts of a path.
    assert!(files(&world, "sr/ma").contains(&"src/main.rs".to_owned()));
    let hidden = files(&world, ".e");
    assert!(
        hidden.contains(&".env".to_owned()) && !hidden.iter().any(|name| name.contains(".git/"))
    );
    // Outside the working directory only the folder itself is listed.
    assert_eq!(files(&world, "../"), ["../work/"]);
    let absolute = format!("{}/sr", world.cwd().display());
    assert!(files(&world, &absolute).contains(&format!("{}/src/main.rs", world.cwd().display())));
    assert!(files(&world, "/no/such/folder/x").len() == files(&world, "").len());
}

#[test]
fn files_are_looked_for_no_longer_than_one_waits() {
    let world = World::new("memory");
    put(&world, &["a.md"]);
    let found = complete(&world, Asked::Files("a".to_owned()));
    assert!(found.len() <= 1, "{found:?}");
    let found = super::super::files::below(world.cwd(), "a", Duration::ZERO);
    assert!(found.is_empty());
}

#[test]
fn a_folder_of_very_many_files_is_not_gone_through_to_its_end() {
    let world = World::new("memory");
    fs::create_dir(world.cwd().join("many")).unwrap();
    for number in 0..6000 {
        fs::write(world.cwd().join(format!("many/{number}")), "").unwrap();
    }
    put(&world, &["many/the-needle", "zebra"]);
    let found = files(&world, "needle");
    assert!(found.len() <= 6003);
    assert!(
        found.contains(&"zebra".to_owned()),
        "what is near comes first"
    );
    assert!(
        found.contains(&"many/the-needle".to_owned()),
        "what fits is always told"
    );
    assert!(
        found.len() < 6000,
        "what does not fit is left out beyond some"
    );
}

#[test]
fn sessions_come_with_title_and_age() {
    for world in World::each() {
        let other = Writer::begin_with(
            world.store(),
            world.clock(),
            |_| {},
            vec![human("elsewhere")],
        );
        let here = world.small("parser\u{1b} rewrite");
        let candidates = complete(&world, Asked::Sessions(String::new()));
        let inserted: Vec<&str> = candidates
            .iter()
            .map(|candidate| candidate.insert.as_str())
            .collect();
        assert_eq!(inserted, [here.id.short(), other.id.short()]);
        assert_eq!(candidates[0].label.as_deref(), Some("parser  rewrite"));
        assert!(!candidates[0].note.is_empty());
        let candidates = complete(&world, Asked::Sessions(other.id.short()));
        assert_eq!(candidates[0].insert, other.id.short());
        assert_eq!(candidates.len(), 2, "each once");
    }
}

#[test]
fn models_are_those_of_the_agent() {
    let world = World::new("memory");
    let models = complete(&world, Asked::Models("d".to_owned()));
    assert_eq!(models.len(), 1);
    let ask = |agent: Option<&str>| {
        let store_service =
            StoreService::new(world.workspace.clone(), agent.map(str::to_owned), true);
        let request = || Request::Complete(Asked::Models(String::new()));
        let answers = [
            store_service.answer(request()),
            store_service.answer(request()),
        ];
        answers.map(|answer| held!(answer, Answer::Complete(_, models) => models))
    };
    assert_eq!(ask(None), [Ok(Vec::new()), Ok(Vec::new())]);
    let [first, second] = ask(Some("nobody"));
    assert!(refused(first).contains("there is no agent 'nobody'"));
    assert_eq!(second, Ok(Vec::new()), "it is not asked again at once");
}

#[test]
fn teams_are_named() {
    let world = World::new("memory");
    assert!(complete(&world, Asked::Teams(String::new())).is_empty());
    put(&world, &[".tertulia/teams/review.json"]);
    let teams = complete(&world, Asked::Teams("re".to_owned()));
    assert_eq!(teams, [Candidate::new("review")]);
}
