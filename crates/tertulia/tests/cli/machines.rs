//! Sessions that several machines changed or continued: what is merged, what is said, and what branches
//! are called on each.

use serde_json::json;

use crate::home::{Backend, Home, both, short};

#[test]
fn every_machine_is_told_of_a_divergence_and_names_branches_its_own_way() {
    let (here, there, hub) = (Home::new(), Home::new(), Home::with(Backend::Files));
    let id = here.say("echo plan");
    let url = hub.store_url();
    here.run(&["push", &url]).ok();
    there.run(&["pull", &url]).ok().notes("1 new session");
    there.say_in(&id, "echo on there");
    here.say_in(&id, "echo on here");
    here.run(&["sync", &url]).ok();
    there
        .run(&["sync", &url])
        .ok()
        .notes("continued on both sides");
    let fork = |home: &Home| {
        let all = home.all();
        let forks = all.iter().map(|session| session["id"].as_str().unwrap());
        let mut forks = forks.filter(|fork| *fork != id);
        forks.next().unwrap().to_owned()
    };
    let theirs = fork(&there);
    there.run(&["merge", &id, &theirs]).ok();
    there.run(&["sync", &url]).ok();
    // The first machine pulls the other branch as a fork of the hub: it is told all the same.
    let told = here.run(&["pull", &url]).ok();
    let all = here.all();
    let merge = all
        .iter()
        .find(|session| session["parent"]["relation"] == "merge")
        .unwrap();
    let ours = all
        .iter()
        .find(|session| session["parent"]["relation"] == "conflict")
        .unwrap();
    let ours = ours["id"].as_str().unwrap();
    told.notes(&format!(
        "session {} was continued on both sides: the other branch is {} here",
        short(&id),
        short(ours)
    ));
    // A machine that never had the session is told nothing.
    let third = Home::new();
    third.run(&["pull", &url]).ok().lacks("both sides");
    let merge = merge["id"].as_str().unwrap();
    there.run(&["show", merge]).ok().says(&format!(
        // The second machine recorded its own folder as an entry.
        "merge of {}:6 and {}:6",
        short(&id),
        short(&theirs)
    ));
    here.run(&["show", merge]).ok().says(&format!(
        "merge of {}:7 and {}:5",
        short(ours),
        short(&id)
    ));
    here.run(&["show", merge, "--entries"])
        .ok()
        .says(&format!("merge of {} at entry 7", short(ours)));
    let named = format!("merge of {} at 7 and {} at 5", short(ours), short(&id));
    here.run(&["log", merge]).ok().says(&named);
    here.run(&["log", &id, "--graph"]).ok().says(&named);
    let shown = here.run(&["show", merge, "--json"]).ok().json();
    assert_eq!(shown["parent"]["id"], *ours);
    let listed = here.run(&["list", "--all", "--json"]).ok().json();
    let listed = listed["sessions"].as_array().unwrap().clone();
    let listed = listed.iter().find(|session| session["id"] == *merge);
    assert_eq!(listed.unwrap()["parent"]["id"], *ours);
}

#[test]
fn names_tags_and_trash_of_both_sides_are_merged() {
    both(|here| {
        let there = Home::new();
        let (id, other) = (here.say("echo plan"), here.say("echo more"));
        let url = there.store_url();
        here.run(&["push", &url]).ok();
        here.run(&["rename", &id, "tomatoes"]).ok();
        there.run(&["tag", &id, "+x"]).ok();
        here.run(&["tag", &other, "+y"]).ok();
        there.run(&["rm", "-y", &other]).ok();
        here.run(&["sync", &url])
            .ok()
            .notes("Pulled 2 entries (2 sessions extended) from")
            .notes("Pushed 2 entries (2 sessions extended) to")
            .lacks("both sides");
        here.run(&["sync", &url]).ok().notes("Pulled nothing new");
        for home in [here, &there] {
            let shown = home.show(&id);
            assert_eq!(
                (&shown["title"], &shown["tags"]),
                (&json!("tomatoes"), &json!(["x"]))
            );
            assert_eq!(home.all().len(), 1);
            home.run(&["list", "--all", "--trash"])
                .ok()
                .says("echo more");
            home.run(&["search", "--all", "tomatoes"])
                .ok()
                .says("tomatoes");
            home.run(&["doctor"]).ok();
        }
        let raw = |home: &Home| home.run(&["show", &id, "--raw"]).ok().stdout;
        assert_eq!(raw(here), raw(&there));
    });
}
