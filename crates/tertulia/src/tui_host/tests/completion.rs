//! Completion candidates.

use std::fs;

use super::*;

fn complete(world: &World, asked: Asked) -> Vec<Candidate> {
    let request = Request::Complete(asked.clone(), Some("demo".to_owned()));
    held!(world.answer(request), Answer::Complete(of, candidates) => {
        assert_eq!(of, asked);
        candidates.unwrap()
    })
}

fn put(world: &World, names: &[&str]) {
    for name in names {
        let path = world.cwd().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
}

#[test]
fn files_are_looked_for_no_longer_than_one_waits() {
    let world = World::new("memory");
    put(&world, &["a.md"]);
    let found = complete(&world, Asked::Files("a".to_owned()));
    assert!(found.len() <= 1, "{found:?}");
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
        let store_service = service(&world.workspace, true);
        let agent = agent.map(str::to_owned);
        let request = || Request::Complete(Asked::Models(String::new()), agent.clone());
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
