//! Failed answers, and what is kept of them.

use tertulia_testkit::provider::Api;

use super::world::{ATTEMPTS, World, for_each_api, numbered};
use crate::home::{Backend, until};

for_each_api!(
    a_refusal_for_now_is_tried_again,
    a_broken_service_is_given_up,
    a_service_that_hangs_up_at_once_is_given_up,
    what_was_shown_before_the_connection_ended_is_kept,
    a_stream_that_is_not_json_fails,
    a_stream_that_turns_into_an_error_fails,
    a_stream_without_an_end_fails,
    a_stalled_stream_is_left,
    a_silent_service_is_left,
    too_long_a_talk_is_not_tried_again,
);

fn a_refusal_for_now_is_tried_again(api: Api) {
    let world = World::new(api);
    let document = world.answered("[[fail:429:times=1:retry_after=0]] [[say:there you are]]");
    assert_eq!(document["messages"][1]["content"], "there you are");
    assert_eq!(world.questions().len(), 2);
    assert_eq!(world.messages().len(), 2);
    let world = World::new(api);
    let words = format!(
        "[[fail:503:times={}:retry_after=0]] [[say:late]]",
        ATTEMPTS - 1
    );
    assert_eq!(world.ask(&words).ok().stdout, "late\n");
    assert_eq!(world.questions().len(), ATTEMPTS);
}

fn a_broken_service_is_given_up(api: Api) {
    let world = World::new(api);
    let output = world.ask("[[fail:500:retry_after=0]]").code(6);
    assert_eq!(output.stdout, "");
    assert_eq!(world.questions().len(), ATTEMPTS);
    assert_eq!(world.failure()["kind"], "unavailable");
    assert_eq!(world.messages().len(), 1, "only the question");
    let output = world.run(&[
        "--json",
        "chat",
        "--agent",
        "a",
        "-p",
        "[[fail:500:retry_after=0]]",
    ]);
    assert_eq!(output.code(6).error()["kind"], "agent");
    // An unanswered prompt is sent with the next one.
    let words = "[[fail:none]] [[say:better]]";
    let output = world.run(&["chat", "-c", "--agent", "a", "-p", words]);
    assert_eq!(output.ok().stdout, "better\n");
}

fn a_service_that_hangs_up_at_once_is_given_up(api: Api) {
    let world = World::new(api);
    world.ask("[[fail:drop0]]").code(6);
    // The HTTP client may retry by itself if a kept-alive connection is gone.
    assert!(world.questions().len() >= ATTEMPTS);
    assert_eq!(world.failure()["kind"], "unavailable");
}

fn what_was_shown_before_the_connection_ended_is_kept(api: Api) {
    let world = World::new(api);
    let output = world.ask("[[words:40]] [[fail:drop:after=20]]").code(6);
    assert_eq!(output.stdout.trim_end(), numbered(20));
    let failure = world.cut_off_after(&numbered(20));
    assert_eq!(failure["kind"], "unavailable");
    assert_eq!(
        world.questions().len(),
        1,
        "what was shown is not said twice"
    );
    let output = world.run(&["chat", "-c", "--agent", "a", "-p", "[[say:go on]]"]);
    assert_eq!(output.ok().stdout, "go on\n");
}

fn a_stream_that_is_not_json_fails(api: Api) {
    let world = World::new(api);
    world.ask("[[words:9]] [[fail:malformed:after=3]]").code(6);
    let failure = world.cut_off_after(&numbered(3));
    assert_eq!(failure["kind"], "protocol");
    assert_eq!(world.questions().len(), 1);
}

fn a_stream_that_turns_into_an_error_fails(api: Api) {
    let world = World::new(api);
    world
        .ask("[[words:9]] [[fail:error_event:after=3]]")
        .code(6);
    let failure = world.cut_off_after(&numbered(3));
    // Ollama does not report the kind of error.
    if api != Api::Ollama {
        assert_eq!(failure["kind"], "unavailable");
    }
    assert_eq!(world.questions().len(), 1);
}

fn a_stream_without_an_end_fails(api: Api) {
    let world = World::new(api);
    world.ask("[[words:9]] [[fail:truncate:after=3]]").code(6);
    let failure = world.cut_off_after(&numbered(3));
    assert_eq!(failure["kind"], "protocol");
}

fn a_stalled_stream_is_left(api: Api) {
    let world = World::with(api, Backend::Sqlite, "idle_timeout = \"1s\"\n");
    world.ask("[[words:9]] [[fail:stall:after=3]]").code(6);
    let failure = world.cut_off_after(&numbered(3));
    assert_eq!(failure["kind"], "timeout");
    until("the connection is given up", || {
        (world.provider.client_gone() == 1).then_some(())
    });
}

fn a_silent_service_is_left(api: Api) {
    let world = World::with(api, Backend::Sqlite, "idle_timeout = \"1s\"\n");
    world.ask("[[fail:hang]]").code(6);
    assert_eq!(world.failure()["kind"], "timeout");
    assert_eq!(world.messages().len(), 1, "only the question");
}

fn too_long_a_talk_is_not_tried_again(api: Api) {
    let world = World::new(api);
    world.ask("[[fail:overflow]]").code(6);
    assert_eq!(world.questions().len(), 1);
    assert_eq!(world.failure()["kind"], "too_long");
}
