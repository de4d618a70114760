//! Splits the arguments of a command.

/// Splits arguments at blanks. Quotes group them; a backslash escapes the next character.
pub(super) fn arguments(rest: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => current
                .get_or_insert_default()
                .push(letters.next().unwrap_or('\\')),
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => current.get_or_insert_default().push(letter),
            ('"' | '\'', None) => {
                quote = Some(letter);
                current.get_or_insert_default();
            }
            (_, None) if letter.is_whitespace() => found.extend(current.take()),
            (_, None) => current.get_or_insert_default().push(letter),
        }
    }
    found.extend(current);
    match quote {
        Some(open) => Err(format!("has a {open} that is not closed")),
        None => Ok(found),
    }
}
