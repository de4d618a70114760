//! Statements that the server keeps planned: planning an append costs more than executing it.
//!
//! A plan belongs to a connection, and a pooler gives the transactions of many clients the same
//! connections. A statement is therefore named by its text, so that the name means the same
//! whichever client had it planned. The protocol's own prepared statements are numbered by each client
//! instead: behind a pooler, a number could be another client's statement.

use std::fmt::Write;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};
use uuid::Uuid;

use super::server::Connection;

/// A value of a statement as SQL text: printable ASCII only, whatever it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    kind: &'static str,
    text: String,
}

impl Literal {
    pub(super) fn uuid(value: Uuid) -> Literal {
        let text = format!("'{value}'");
        Literal { kind: "uuid", text }
    }

    pub(super) fn int2(value: i16) -> Literal {
        let text = value.to_string();
        let kind = "smallint";
        Literal { kind, text }
    }

    pub(super) fn int4(value: i32) -> Literal {
        let text = value.to_string();
        let kind = "integer";
        Literal { kind, text }
    }

    pub(super) fn int8(value: impl Into<Option<i64>>) -> Literal {
        let value = value.into();
        let text = value.map_or_else(|| "NULL".to_owned(), |value| format!("'{value}'"));
        let kind = "bigint";
        Literal { kind, text }
    }

    pub(super) fn bytes(value: &[u8]) -> Literal {
        let text = quoted(value);
        let kind = "bytea";
        Literal { kind, text }
    }

    pub(super) fn int8s(values: &[i64]) -> Literal {
        list("bigint[]", values.iter().map(i64::to_string))
    }

    pub(super) fn int4s(values: &[i32]) -> Literal {
        list("integer[]", values.iter().map(i32::to_string))
    }

    pub(super) fn bytes_list(values: &[&[u8]]) -> Literal {
        list("bytea[]", values.iter().map(|value| quoted(value)))
    }
}

/// Quotes bytes in the shorter of the two forms that the server reads: most lines are printable, and as
/// they are cost it half of what hexadecimal digits do.
/// `E` has the same meaning whatever the server's setting for backslashes is.
fn quoted(bytes: &[u8]) -> String {
    let escaped: usize = bytes.iter().map(|byte| escaped_length(*byte)).sum();
    let mut text = String::with_capacity(escaped.min(2 * bytes.len()) + 6);
    match escaped < 2 * bytes.len() {
        true => escape(bytes, &mut text),
        false => hexadecimal(bytes, &mut text),
    }
    text.push('\'');
    text
}

/// Each backslash stands for two: the string is read first, then the bytes in it.
fn escape(bytes: &[u8], text: &mut String) {
    text.push_str("E'");
    for byte in bytes {
        match byte {
            b'\'' => text.push_str("''"),
            b'\\' => text.push_str(r"\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => {
                let _ = write!(text, r"\\{byte:03o}");
            }
        }
    }
}

fn escaped_length(byte: u8) -> usize {
    match byte {
        b'\'' => 2,
        b'\\' => 4,
        b' '..=b'~' => 1,
        _ => 5,
    }
}

fn hexadecimal(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push_str(r"E'\\x");
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// A list of values. Its kind stands with it: a list of texts is not taken for a list of bytes.
fn list(kind: &'static str, items: impl Iterator<Item = String>) -> Literal {
    let items: Vec<String> = items.collect();
    let text = format!("ARRAY[{}]::{kind}", items.join(","));
    Literal { kind, text }
}

/// A statement with `$1`, `$2`, … for its values.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Literal>,
}

impl Statement {
    fn name(&self) -> String {
        let hash = blake3::hash(self.sql.as_bytes()).to_hex();
        format!("tertulia_append_{}", &hash[..16])
    }

    /// Returns the statement that has this one planned.
    fn prepare(&self, name: &str) -> String {
        let kinds: Vec<&str> = self.values.iter().map(|value| value.kind).collect();
        format!("PREPARE {name}({}) AS {}", kinds.join(", "), self.sql)
    }

    /// Returns the statement that executes this one by its plan.
    fn execute(&self, name: &str) -> String {
        let values: usize = self.values.iter().map(|value| value.text.len() + 1).sum();
        let mut sql = String::with_capacity(name.len() + values + 10);
        let _ = write!(sql, "EXECUTE {name}(");
        for (number, value) in self.values.iter().enumerate() {
            sql.push_str(if number == 0 { "" } else { "," });
            sql.push_str(&value.text);
        }
        sql.push(')');
        sql
    }

    /// Returns the statement with its values in their places.
    fn inline(&self) -> String {
        let mut pieces = self.sql.split('$');
        let mut sql = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_digit());
            let (number, rest) = piece.split_at(end.unwrap_or(piece.len()));
            let value = number.parse::<usize>().ok().and_then(|number| {
                let index = number.checked_sub(1)?;
                self.values.get(index)
            });
            if let Some(value) = value {
                let _ = write!(sql, "{}::{}", value.text, value.kind);
            }
            sql.push_str(rest);
        }
        sql
    }
}

/// Executes a statement in a transaction of its own, by its plan if the server can keep one. Returns the
/// number of rows that it changed.
pub(super) async fn execute_planned(
    connection: &Connection,
    statement: &Statement,
) -> Result<u64, Error> {
    let name = statement.name();
    if !connection.is_planned(&name) {
        plan(connection, statement, &name).await?;
    }
    if !connection.can_plan() {
        return execute_inline(connection, statement).await;
    }
    match changed_rows(connection, &statement.execute(&name)).await {
        // A pooler has chosen a connection without the plan, and may choose yet another one next time.
        Err(error) if error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME) => {
            plan(connection, statement, &name).await?;
            execute_inline(connection, statement).await
        }
        done => done,
    }
}

/// Executes a statement without a plan, also within a transaction.
pub(super) async fn execute_inline(client: &Client, statement: &Statement) -> Result<u64, Error> {
    changed_rows(client, &statement.inline()).await
}

/// Has a statement planned, unless the server does not do that.
async fn plan(connection: &Connection, statement: &Statement, name: &str) -> Result<(), Error> {
    if !connection.can_plan() {
        return Ok(());
    }
    match connection.batch_execute(&statement.prepare(name)).await {
        Ok(()) => connection.set_planned(name),
        // Another client of a pooler had it planned.
        Err(error) if error.code() == Some(&SqlState::DUPLICATE_PSTATEMENT) => {
            connection.set_planned(name);
        }
        Err(error) if error.as_db_error().is_some() && !stops_everything(&error) => {
            connection.give_up_planning();
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns true if any statement would fail in the same way: the connection or the server is lost, out of
/// resources or read-only.
fn stops_everything(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        let class = &code.code()[..2];
        matches!(class, "08" | "25" | "40" | "53" | "57" | "58" | "XX")
    })
}

async fn changed_rows(client: &Client, sql: &str) -> Result<u64, Error> {
    let answers = client.simple_query(sql).await?;
    let rows = answers.iter().map(|answer| match answer {
        SimpleQueryMessage::CommandComplete(rows) => *rows,
        _ => 0,
    });
    Ok(rows.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_places() {
        let statement = Statement {
            sql: "UPDATE t SET a = $2, b = $1 WHERE c = $3 AND d = $11".to_owned(),
            values: vec![
                Literal::bytes(b"it's $1 \\ \0"),
                Literal::int8(None),
                Literal::int8(-5),
            ],
        };
        assert_eq!(
            statement.inline(),
            r"UPDATE t SET a = NULL::bigint, b = E'it''s $1 \\\\ \\000'::bytea WHERE c = '-5'::bigint AND d = "
        );
        assert_eq!(
            statement.execute("n"),
            r"EXECUTE n(E'it''s $1 \\\\ \\000',NULL,'-5')"
        );
        assert!(
            statement
                .prepare("n")
                .starts_with("PREPARE n(bytea, bigint, bigint) AS UPDATE t")
        );
    }

    #[test]
    fn bytes_take_the_shorter_form() {
        let of = |bytes: &[u8]| Literal::bytes(bytes).text;
        assert_eq!(of(br"plain \x41"), r"E'plain \\\\x41'");
        assert_eq!(of("né".as_bytes()), r"E'\\x6ec3a9'");
        assert_eq!(of(b"\0\xff"), r"E'\\x00ff'");
        assert_eq!(of(b""), r"E'\\x'");
    }

    #[test]
    fn a_name_is_that_of_the_text() {
        let of = |sql: &str| {
            let sql = sql.to_owned();
            let values = Vec::new();
            Statement { sql, values }.name()
        };
        assert_eq!(of("SELECT 1"), of("SELECT 1"));
        assert_ne!(of("SELECT 1"), of("SELECT 2"));
        assert!(of("SELECT 1").len() < 63);
    }
}
