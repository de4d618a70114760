use super::*;

const ROWS: usize = 6;

fn names(completion: &Completion) -> Vec<&str> {
    let offers = completion.offers(ROWS);
    offers.iter().map(|offer| offer.candidate.shown()).collect()
}

fn at_end(completion: &mut Completion, text: &str) -> Option<Asked> {
    completion.update(text, text.len())
}

fn with_members() -> Completion {
    let mut completion = Completion::default();
    completion.set_members(
        ["alice", "bob", "ana maría"]
            .into_iter()
            .map(Candidate::new)
            .collect(),
    );
    completion
}

#[test]
fn commands_are_found_by_their_letters() {
    let mut completion = Completion::default();
    assert_eq!(at_end(&mut completion, "/he"), None);
    assert_eq!(names(&completion)[0], "/help");
    at_end(&mut completion, "/cmp");
    assert!(names(&completion).contains(&"/compact"));
    assert_eq!(names(&completion).len(), 2, "{:?}", names(&completion));
    at_end(&mut completion, "/");
    assert_eq!(completion.position(), (1, slash::COMMANDS.len()));
    assert_eq!(names(&completion).len(), ROWS);
}

#[test]
fn a_mistyped_command_offers_the_nearest() {
    let mut completion = Completion::default();
    at_end(&mut completion, "/hepl");
    assert_eq!(names(&completion), ["/help"]);
    at_end(&mut completion, "/xyzzy");
    assert!(!completion.is_open());
}

#[test]
fn the_window_follows_the_choice() {
    let mut completion = Completion::default();
    at_end(&mut completion, "/");
    for _ in 0..7 {
        completion.choose(true);
    }
    let offers = completion.offers(ROWS);
    assert_eq!(offers.len(), ROWS);
    assert_eq!(offers[ROWS - 1].candidate.shown(), "/rewind [N]");
    assert!(offers[ROWS - 1].chosen);
    for _ in 0..8 {
        completion.choose(false);
    }
    assert!(
        completion.offers(ROWS)[ROWS - 1].chosen,
        "round to the last"
    );
}

#[test]
fn what_is_unknown_is_asked_for_and_late_answers_are_dropped() {
    let mut completion = with_members();
    let first = at_end(&mut completion, "see @a").unwrap();
    assert_eq!(first, Asked::Files("a".to_owned()));
    assert_eq!(names(&completion), ["alice", "ana maría"]);
    let second = at_end(&mut completion, "see @ar").unwrap();
    assert!(!completion.answer(&first, vec![Candidate::new("arnold.rs")]));
    assert!(completion.answer(&second, vec![Candidate::new("src/args.rs")]));
    assert_eq!(names(&completion), ["src/args.rs", "ana maría"]);
    let accepted = completion.accept("see @ar").unwrap();
    assert_eq!(
        (accepted.range, accepted.text.as_str()),
        (5..7, "src/args.rs ")
    );
    assert!(!completion.answer(&second, Vec::new()), "it is closed");
}

#[test]
fn sessions_are_found_by_title_and_by_id() {
    let mut completion = Completion::default();
    let asked = at_end(&mut completion, "/resume ").unwrap();
    assert_eq!(asked, Asked::Sessions(String::new()));
    let session = Candidate::new("5f3a9c1e").labelled("The build is broken");
    completion.answer(&asked, vec![session.noted("3 hours ago")]);
    assert_eq!(names(&completion), ["The build is broken"]);
    at_end(&mut completion, "/resume build bro");
    assert_eq!(names(&completion), ["The build is broken"]);
    at_end(&mut completion, "/resume 9c1e");
    let text = completion.accept("/resume 9c1e").unwrap().text;
    assert_eq!(text, "5f3a9c1e");
}

#[test]
fn names_close_their_marker() {
    let mut completion = with_members();
    at_end(&mut completion, "hi [NEXT: bo");
    assert_eq!(completion.accept("hi [NEXT: bo").unwrap().text, "bob]");
    completion.update("hi [NEXT: bo]", 12);
    assert_eq!(completion.accept("hi [NEXT: bo]").unwrap().text, "bob");
    at_end(&mut completion, "@ana");
    assert_eq!(completion.accept("@ana").unwrap().text, "\"ana maría\" ");
}

#[test]
fn what_was_closed_stays_closed_for_this_word() {
    let mut completion = with_members();
    at_end(&mut completion, "@a");
    completion.dismiss();
    assert_eq!(at_end(&mut completion, "@al"), None);
    assert!(!completion.is_open());
    at_end(&mut completion, "@al @");
    assert!(completion.is_open());
    completion.dismiss();
    completion.want();
    at_end(&mut completion, "@al @b");
    assert_eq!(names(&completion), ["bob"]);
}

#[test]
fn nothing_is_left_to_accept_when_it_is_written() {
    let mut completion = Completion::default();
    at_end(&mut completion, "/end");
    assert!(completion.is_written());
    at_end(&mut completion, "/resume");
    assert!(completion.is_written(), "its argument may be left out");
    at_end(&mut completion, "/team");
    assert!(!completion.is_written(), "it needs more");
    at_end(&mut completion, "/en");
    assert!(!completion.is_written());
}
