//! Questions on the screen: only a letter and Enter answers one, and a sentence that is typed
//! meanwhile is text.

use super::stage::{leave, open, ready, say, status_says, talk, wrote};
use crate::home::Home;
use crate::pairs::stage::{home as pair_home, marks, with_both};
use crate::teams::cast::{Cast, speakers};

#[test]
fn a_sentence_does_not_resume_the_earlier_session_of_a_team() {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    let document = cast.turn(&["--as", "ann", "[NEXT: ada] first words"]);
    let earlier = document["session_id"].as_str().unwrap();
    let mut terminal = open(&cast.home, &["team", "team.json", "--as", "ann"]).with_clear_keys();
    terminal.sees("Esc decide later");
    status_says(&mut terminal, "needs you");
    terminal.type_text("review the plan");
    terminal.sees("Ann> review the plan");
    terminal.sees("you are writing below");
    assert!(!terminal.contents().contains("restored"));
    // It is sent once it is known where to.
    terminal.keys("Enter");
    terminal.sees("queued: review the plan");
    terminal.sees("Esc decide later");
    terminal.type_text("n\n");
    terminal.sees("nobody was addressed");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(cast.home.said(earlier).len(), 2, "it is as it was");
    assert_eq!(cast.home.all().len(), 2);
    assert_eq!(cast.home.said("@"), ["review the plan"]);
    assert_eq!(speakers(&cast.messages("@")), ["ann"]);
}

#[test]
fn a_sentence_does_not_take_a_session_over() {
    let home = Home::new();
    let id = home.say("echo shared");
    let mut first = talk(&home, &["-c"]);
    let mut other = open(&home, &["-c"]).with_clear_keys();
    other.sees("This session is open elsewhere");
    other.sees("Enter read only");
    status_says(&mut other, "needs you");
    for sentence in ["the tests fail", "really?", "for now"] {
        other.type_text(sentence);
        wrote(&mut other, &[sentence]);
        other.keys("^u");
        other.sees("Enter read only");
    }
    other.paste("take care");
    wrote(&mut other, &["take care"]);
    // The first one still has the session, and goes on.
    say(&mut first, "echo still mine", "still mine");
    other.sees("still mine");
    status_says(&mut first, "saved");
    other.keys("Esc");
    status_says(&mut other, "read only");
    leave(&mut first);
    assert_eq!(home.all().len(), 1);
    assert_eq!(home.said(&id)[2], "echo still mine");
}

#[test]
fn a_sentence_does_not_repeat_an_interrupted_instruction() {
    let hand = "cat > /dev/null; echo begin >> marks; echo begun; sleep 60";
    let home = pair_home("cat > /dev/null; echo 'Tell worker: step-1'", hand);
    let mut terminal = talk(&home, &with_both(&[]));
    terminal.type_text("go\n");
    terminal.sees("begun");
    terminal.kill9();
    assert_eq!(marks(&home), ["begin"]);
    let mut terminal = open(&home, &["pair", "-c"]).with_clear_keys();
    terminal.sees("Repeat the interrupted instruction?");
    terminal.sees("step-1");
    terminal.sees("Enter no");
    status_says(&mut terminal, "needs you");
    terminal.type_text("yesterday I saw");
    wrote(&mut terminal, &["yesterday I saw"]);
    terminal.keys("^u");
    terminal.paste("yes and no");
    wrote(&mut terminal, &["yes and no"]);
    terminal.keys("^u");
    terminal.sees("Enter no");
    terminal.keys("Enter");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(marks(&home), ["begin"], "the worker was not asked again");
}

#[test]
fn a_sentence_does_not_switch_to_an_unknown_model() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "echo one", "one");
    terminal.type_text("/model nonsense\n");
    terminal.sees("'nonsense' is not listed by demo; use it anyway?");
    terminal.sees("Enter no");
    status_says(&mut terminal, "needs you");
    terminal.type_text("why is it slow?");
    wrote(&mut terminal, &["why is it slow?"]);
    terminal.keys("^u");
    terminal.sees("Enter no");
    terminal.type_text("y");
    terminal.sees("Enter: use this model");
    terminal.keys("Backspace Esc");
    ready(&mut terminal);
    status_says(&mut terminal, "demo-1");
    leave(&mut terminal);
    let shown = home.run(&["show", "@", "--entries"]).ok();
    shown.lacks("nonsense");
}
