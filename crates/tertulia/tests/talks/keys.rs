//! Keys go to the provider only: not to the store, the terminal or a tool.

use std::fs;

use tertulia_testkit::provider::Api;

use crate::agents::world::{KEY, World, for_each_api};
use crate::home::{Backend, Home, files_below};

for_each_api!(
    a_key_that_a_program_tells_is_written_nowhere,
    a_command_does_not_see_the_keys,
);

/// The key comes from `key_command`, out of a variable that is not known to hold a key.
fn told_by_a_program(api: Api, backend: Backend) -> World {
    let world = World::with(api, backend, "");
    world.home.settings(&format!(
        "[agents.a]\ntype = \"{}\"\nbase_url = \"{}\"\nmodel = \"m\"\nretries = 0\nkey_command = \"echo $HIDDEN\"\n",
        api.name(),
        world.provider.base_url(api),
    ));
    world
}

/// Checks that no file below the home contains the key.
#[track_caller]
fn nobody_holds_it(world: &World) {
    for path in files_below(world.home.path()) {
        let bytes = fs::read(&path).unwrap();
        let holds = bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes());
        assert!(!holds, "it is in {}", path.display());
    }
}

fn a_key_that_a_program_tells_is_written_nowhere(api: Api) {
    let world = told_by_a_program(api, Backend::Sqlite);
    let run = |args: &[&str]| world.home.prepare(args).env("HIDDEN", KEY).run().lacks(KEY);
    for words in [
        "hello",
        r#"[[tool:directory_list {}]]"#,
        "[[fail:401]]",
        "[[fail:500]]",
    ] {
        for way in [
            &["-v", "chat"][..],
            &["--json", "chat"],
            &["-v", "chat", "--output-format", "stream-json"],
        ] {
            let args = [way, &["--agent", "a", "-p", words]].concat();
            let expected = if words.starts_with("[[fail") { 6 } else { 0 };
            run(&args).code(expected);
        }
    }
    for way in [
        &["-v", "agents"][..],
        &["agents", "a", "--json"],
        &["agents", "check", "a"],
        &["agents", "models", "a"],
        &["show", "@", "--raw"],
    ] {
        run(way).ok();
    }
    // Otherwise the test would prove nothing.
    if api != Api::Ollama {
        assert_eq!(world.questions()[0].key(), Some(KEY));
    }
    nobody_holds_it(&world);
}

fn a_command_does_not_see_the_keys(api: Api) {
    let world = World::new(api);
    // The settings of another agent name a variable, too.
    let settings = world.home.path().join(".config/tertulia/config.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    text.push_str("[agents.b]\ntype = \"openai\"\nkey_env = \"OTHER_KEY\"\n");
    fs::write(&settings, text).unwrap();
    let hidden = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OTHER_KEY",
    ];
    let words = r#"[[tool:shell {"command":"env; echo seen=$TEST_KEY$OTHER_KEY"}]]"#;
    let args = ["chat", "--agent", "a", "--approve", "all", "-p", words];
    let mut prepared = world.home.prepare(&args).env("PLAIN", "plain");
    // An agent without a key names no variable, so this one would not be hidden.
    if api != Api::Ollama {
        prepared = prepared.env("TEST_KEY", KEY);
    }
    for name in hidden {
        prepared = prepared.env(name, KEY);
    }
    let output = prepared.run().ok().lacks(KEY);
    output.says("PLAIN=plain").says("seen=\n");
    let said = world.home.said("@").join("\n");
    for name in hidden {
        assert!(!said.contains(&format!("{name}=")), "{name} in {said}");
    }
    assert!(!said.contains("TEST_KEY="), "{said}");
    nobody_holds_it(&world);
}

#[test]
fn nothing_that_is_run_learns_the_way_to_the_store() {
    let home = Home::new();
    home.script_agent("prints", "cat > /dev/null; env");
    let hidden = [
        ("TERTULIA_STORE", home.store_url()),
        ("PGPASSWORD", "of the database".to_owned()),
        ("PGPASSFILE", "/secret/passwords".to_owned()),
        ("PGSERVICEFILE", "/secret/services".to_owned()),
    ];
    for (agent, words) in [("demo", r#"use shell {"command":"env"}"#), ("prints", "x")] {
        let args = ["chat", "--agent", agent, "--approve", "all", "-p", words];
        let mut prepared = home.prepare(&args).env("PLAIN", "plain");
        for (name, value) in &hidden {
            prepared = prepared.env(name, value);
        }
        prepared.run().ok();
        let said = home.said("@").join("\n");
        assert!(said.contains("PLAIN=plain"), "{said}");
        for (name, _) in &hidden {
            assert!(!said.contains(&format!("{name}=")), "{name} in {said}");
        }
    }
}
