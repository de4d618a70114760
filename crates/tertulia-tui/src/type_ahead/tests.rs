use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn queue(words: &[&str]) -> TypeAhead {
    let mut ahead = TypeAhead::default();
    words
        .iter()
        .for_each(|words| ahead.put((*words).to_owned()));
    ahead
}

fn waiting(ahead: &TypeAhead) -> Vec<&str> {
    ahead.waiting().collect()
}

/// What the session tells after the commands so far, in which each message waits.
fn told(commands: &[LiveCommand]) -> Vec<UnsentMessage> {
    let mut all: Vec<UnsentMessage> = Vec::new();
    for command in commands {
        match command {
            LiveCommand::Queue { client_id, text } => all.push(UnsentMessage {
                client_id: client_id.clone(),
                at: NOW,
                text: text.clone(),
                is_command: false,
                attaches: true,
                is_queued: true,
            }),
            LiveCommand::EditQueued {
                client_id,
                text: Some(text),
            } => {
                let mut all = all.iter_mut();
                let it = all.find(|message| message.client_id == *client_id);
                it.unwrap().text.clone_from(text);
            }
            LiveCommand::Withdraw { client_id } => {
                all.retain(|message| message.client_id != *client_id);
            }
            _ => {}
        }
    }
    all
}

#[test]
fn an_edited_message_goes_back_to_its_place() {
    let mut ahead = queue(&["one", "two", "three"]);
    assert_eq!(ahead.edit_previous(String::new()).unwrap(), "three");
    assert_eq!(ahead.edit_previous("3".to_owned()).unwrap(), "two");
    assert_eq!(
        (waiting(&ahead), ahead.edited()),
        (vec!["one", "3"], Some((2, 3)))
    );
    ahead.put("2".to_owned());
    assert_eq!(
        (waiting(&ahead), ahead.edited()),
        (vec!["one", "2", "3"], None)
    );
}

#[test]
fn the_first_has_none_before_it_and_the_last_none_after_it() {
    let mut ahead = queue(&["one", "two"]);
    assert_eq!(ahead.edit_next("x".to_owned()), None);
    ahead.edit_previous(String::new());
    ahead.edit_previous("two".to_owned());
    assert_eq!(ahead.edit_previous("1".to_owned()), None);
    assert_eq!(ahead.edited(), Some((1, 2)));
    assert_eq!(ahead.edit_next("1".to_owned()).unwrap(), "two");
    assert_eq!(ahead.edit_next("2".to_owned()).unwrap(), "");
    assert_eq!((waiting(&ahead), ahead.edited()), (vec!["1", "2"], None));
}

#[test]
fn the_session_is_told_of_every_change() {
    let mut ahead = queue(&["one", "two", "three"]);
    ahead.hand_over(NOW);
    let mut commands = ahead.take_commands();
    ahead.hand_over(NOW);
    assert_eq!(ahead.take_commands(), [], "each once");
    ahead.sync(told(&commands));
    assert_eq!(waiting(&ahead), ["one", "two", "three"]);
    ahead.edit_previous(String::new());
    ahead.edit_previous("3".to_owned());
    ahead.put("2".to_owned());
    commands.extend(ahead.take_commands());
    let now = told(&commands);
    let words: Vec<&str> = now.iter().map(|message| &*message.text).collect();
    assert_eq!(words, ["one", "2", "3"]);
    ahead.sync(now);
    assert_eq!(waiting(&ahead), ["one", "2", "3"]);
    ahead.edit_previous(String::new());
    assert!(ahead.drop_edited() && !ahead.drop_edited());
    commands.extend(ahead.take_commands());
    assert_eq!(told(&commands).len(), 2);
}

#[test]
fn what_was_sent_does_not_wait_any_more() {
    let mut ahead = queue(&["one", "two"]);
    ahead.hand_over(NOW);
    let mut all = told(&ahead.take_commands());
    ahead.sync(all.clone());
    all.remove(0);
    ahead.sync(all);
    assert_eq!(waiting(&ahead), ["two"]);
    // A message that the session does not know yet stays.
    ahead.put("three".to_owned());
    ahead.hand_over(NOW);
    ahead.sync(Vec::new());
    assert_eq!(waiting(&ahead), ["three"]);
}

#[test]
fn an_edited_message_that_was_sent_is_one_of_its_own() {
    let mut ahead = queue(&["one"]);
    ahead.hand_over(NOW);
    ahead.sync(told(&ahead.clone().take_commands()));
    ahead.edit_previous(String::new());
    ahead.take_commands();
    ahead.sync(Vec::new());
    assert_eq!(ahead.edited(), None);
    ahead.put("other".to_owned());
    ahead.hand_over(NOW);
    assert!(
        matches!(&ahead.take_commands()[..], [LiveCommand::Queue { text, .. }] if text == "other")
    );
}

#[test]
fn words_come_back_to_the_screen_that_wrote_them() {
    let mut ahead = queue(&["one"]);
    ahead.hand_over(NOW);
    let all = told(&ahead.take_commands());
    ahead.sync(all.clone());
    assert!(ahead.withdrawn(&all[0].client_id));
    assert_eq!(ahead.take_commands().len(), 1, "it is no draft for others");
    assert!(!ahead.withdrawn(&all[0].client_id), "once");
    let mut other = TypeAhead::default();
    other.sync(all.clone());
    assert!(!other.withdrawn(&all[0].client_id));
    assert!(other.is_empty());
}

/// The session may have told of a message before it learns that it was taken back, and cancels it, too.
#[test]
fn what_was_taken_back_comes_back_once() {
    let mut ahead = queue(&["one"]);
    ahead.hand_over(NOW);
    let mut all = told(&ahead.take_commands());
    assert_eq!(ahead.take_all(String::new()), ["one"]);
    ahead.sync(all.clone());
    assert!(ahead.is_empty());
    assert!(!ahead.withdrawn(&all[0].client_id));
    all[0].is_queued = false;
    ahead.sync(all);
    assert_eq!(ahead.drafts().len(), 0);
}

#[test]
fn drafts_do_not_wait_and_are_taken_once() {
    let mut ahead = queue(&["one"]);
    ahead.hand_over(NOW);
    let mut all = told(&ahead.take_commands());
    all[0].is_queued = false;
    let mut other = TypeAhead::default();
    other.sync(all);
    assert!(other.is_empty());
    assert_eq!(other.drafts().collect::<Vec<_>>(), ["one"]);
    assert_eq!(other.take_drafts(), ["one"]);
    assert_eq!(other.take_commands().len(), 1);
    assert_eq!(other.take_drafts(), [""; 0]);
}

#[test]
fn all_come_back_in_their_order() {
    let mut ahead = queue(&["one", "two"]);
    ahead.edit_previous(String::new());
    ahead.edit_previous("two".to_owned());
    assert!(!ahead.is_empty());
    assert_eq!(ahead.take_all("1".to_owned()), ["1", "two"]);
    assert!(ahead.is_empty());
    let mut ahead = queue(&["one"]);
    assert_eq!(ahead.take_all("draft".to_owned()), ["one", "draft"]);
    let mut ahead = queue(&["one"]);
    ahead.edit_previous(String::new());
    assert!(ahead.drop_edited() && !ahead.drop_edited());
    assert_eq!(ahead.take_all(String::new()), [""; 0]);
}
