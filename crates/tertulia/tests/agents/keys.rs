//! Keys go to the provider and nowhere else.

use std::fs;

use tertulia_testkit::provider::Api;

use super::world::{KEY, World, for_each_api};
use crate::home::{Backend, files_below};

for_each_api!(
    a_key_that_is_refused_is_tried_once_and_shown_nowhere,
    a_key_that_works_is_written_nowhere,
    a_key_that_is_not_there_is_named,
);

/// Returns the files below the home that contain the key.
fn holders(world: &World) -> Vec<String> {
    let holds = |bytes: &[u8]| {
        bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
    };
    files_below(world.home.path())
        .into_iter()
        .filter(|path| holds(&fs::read(path).unwrap()))
        .map(|path| path.display().to_string())
        .collect()
}

fn a_key_that_is_refused_is_tried_once_and_shown_nowhere(api: Api) {
    let world = World::with(api, Backend::Sqlite, "");
    let ways: [&[&str]; 5] = [
        &["chat"],
        &["--json", "chat"],
        &["-v", "chat"],
        &["chat", "--output-format", "json"],
        &["-v", "chat", "--output-format", "stream-json"],
    ];
    for (before, way) in ways.into_iter().enumerate() {
        let args = [way, &["--agent", "a", "-p", "[[fail:401]]"]].concat();
        world.run(&args).code(6).lacks(KEY);
        assert_eq!(world.questions().len(), before + 1, "{way:?}");
        assert_eq!(world.failure()["kind"], "auth");
    }
    for way in [
        &["show", "@", "--json"][..],
        &["show", "@", "--raw"],
        &["agents", "--json"],
    ] {
        world.run(way).ok().lacks(KEY);
    }
    // Otherwise the test would prove nothing: the provider echoes the key that it got.
    for question in world.questions() {
        assert_eq!(question.key().is_some(), api != Api::Ollama);
        assert!(question.key().is_none_or(|key| key == KEY));
    }
    assert_eq!(holders(&world), Vec::<String>::new());
}

fn a_key_that_works_is_written_nowhere(api: Api) {
    let world = World::new(api);
    world
        .run(&["-v", "chat", "--agent", "a", "-p", "hello"])
        .ok()
        .lacks(KEY);
    world.run(&["-v", "agents"]).ok().lacks(KEY);
    assert_eq!(holders(&world), Vec::<String>::new());
}

fn a_key_that_is_not_there_is_named(api: Api) {
    let world = World::new(api);
    let output = world.home.run(&["chat", "--agent", "a", "-p", "hello"]);
    if api == Api::Ollama {
        output.ok();
        return;
    }
    output.code(6).notes("TEST_KEY");
    assert_eq!(world.questions().len(), 0);
    world.home.run(&["agents"]).ok().says("TEST_KEY");
}
