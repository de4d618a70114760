use std::collections::BTreeMap;

use tertulia_core::entry::{Body, Head, NewEntry, Role, human, plain};
use tertulia_core::id::EntryId;

use super::*;
use crate::args::GlobalArgs;

/// Returns how many messages are kept after several were shown.
fn kept(format: OutputFormat) -> (usize, usize) {
    let message = plain(&human(), Role::User, "hello".into());
    let entry = Entry::chain(
        &Head::START,
        vec![NewEntry {
            id: EntryId::new(uuid::Uuid::from_u128(1)),
            at: jiff::Timestamp::UNIX_EPOCH,
            body: Body::Message(message.clone()),
            redacted: BTreeMap::new(),
            author: None,
        }],
    );
    let entry = entry.unwrap().remove(0);
    let mut ui = Ui::new(&GlobalArgs::default());
    let mut output = Output::new(format, &mut ui, None);
    for _ in 0..5 {
        output.show(SessionEvent::durable(&entry));
    }
    for _ in 0..3 {
        output.show(SessionEvent::Held {
            message: Box::new(message.clone()),
        });
    }
    // The oldest held message is saved now.
    output.show(SessionEvent::durable(&entry));
    assert_eq!(output.unsaved, 2);
    (output.messages.len(), output.held.len())
}

/// Agents may run for very long before a person is next, so only the document keeps messages.
#[test]
fn only_a_document_needs_what_was_said() {
    assert_eq!(kept(OutputFormat::Json), (6, 2));
    assert_eq!(kept(OutputFormat::Text), (0, 0));
    assert_eq!(kept(OutputFormat::StreamJson), (0, 0));
}
