//! The older tables: a response with its prompt per row. Results of tools belong to the prompt.

use std::collections::HashMap;

use super::Call;
use crate::importer::{Answer, Database, ReadError, Row, SessionBuilder, call_of_text};
use tertulia_core::entry::{ToolCall, ToolOutcome};

/// Reads the older tables. Most of them have no index for what they belong to.
pub(super) struct Responses<'a> {
    database: &'a Database,
    /// Ids of responses by conversation.
    conversations: Belongings,
    /// Ids of tool calls by response.
    calls: Belongings,
    /// Ids of results of tools by response.
    results: Belongings,
    has_attachments: bool,
    has_fragments: bool,
}

/// Ids of rows by the id of the row that they belong to.
type Belongings = HashMap<String, Vec<String>>;

/// A row of `responses`.
struct Response {
    call: Call,
    system: Option<String>,
    prompt: Option<String>,
    answer: Option<String>,
    reasoning: Option<String>,
}

impl Response {
    fn of(row: &Row<'_>) -> Response {
        Response {
            call: Call::of(row),
            system: row.text("system"),
            prompt: row.text("prompt"),
            answer: row.text("response"),
            reasoning: row.text("reasoning"),
        }
    }
}

impl<'a> Responses<'a> {
    /// Returns a reader if the database has the tables.
    pub(super) fn of(database: &'a Database) -> Result<Option<Responses<'a>>, ReadError> {
        if !database.has("responses", "conversation_id")? {
            return Ok(None);
        }
        let has_tools = database.has("tool_results", "output")?;
        let of_tools = |table: &str| match has_tools {
            true => {
                let sql = format!("SELECT id, response_id AS owner FROM {table} ORDER BY id");
                belongings(database, &sql)
            }
            false => Ok(HashMap::new()),
        };
        Ok(Some(Responses {
            database,
            // A response without a conversation is one by itself.
            conversations: belongings(
                database,
                "SELECT id, COALESCE(conversation_id, id) AS owner FROM responses \
                 ORDER BY datetime_utc, id",
            )?,
            calls: of_tools("tool_calls")?,
            results: of_tools("tool_results")?,
            has_attachments: database.has("prompt_attachments", "attachment_id")?,
            has_fragments: database.has("prompt_fragments", "fragment_id")?,
        }))
    }

    /// Returns the ids of all conversations.
    pub(super) fn conversations(&self) -> impl Iterator<Item = String> {
        self.conversations.keys().cloned()
    }

    /// Adds the messages of a conversation. Returns its title.
    pub(super) fn read(
        &self,
        conversation: &str,
        builder: &mut SessionBuilder,
    ) -> Result<Option<String>, ReadError> {
        let mut responses = Vec::new();
        for id in self.conversations.get(conversation).into_iter().flatten() {
            let sql = "SELECT * FROM responses WHERE id = ?1";
            let each = &mut |row: &Row<'_>| responses.push(Response::of(row));
            self.database.rows(sql, &[id], each)?;
        }
        let mut system = None;
        for response in responses {
            self.add(&response, &mut system, builder)?;
        }
        let sql = "SELECT name FROM conversations WHERE id = ?1";
        match self.database.has("conversations", "name")? {
            true => Ok(self.database.texts(sql, &[conversation])?.pop()),
            false => Ok(None),
        }
    }

    fn add(
        &self,
        response: &Response,
        last_system: &mut Option<String>,
        builder: &mut SessionBuilder,
    ) -> Result<(), ReadError> {
        let id = &response.call.id;
        builder.at(response.call.started);
        let system = self.with_fragments("system_fragments", id, response.system.as_deref())?;
        if let Some(system) = system.filter(|system| last_system.as_ref() != Some(system)) {
            builder.system(&format!("{id}#system"), &system);
            *last_system = Some(system);
        }
        self.results(id, builder)?;
        let prompt = self.with_fragments("prompt_fragments", id, response.prompt.as_deref())?;
        let mut parts: Vec<String> = prompt.into_iter().collect();
        for attachment in self.attachments(id)? {
            builder.skipped.count("attachments");
            parts.push(attachment);
        }
        if !parts.is_empty() {
            builder.user(&format!("{id}#prompt"), &parts.join("\n"));
        }
        builder.at(response.call.ended);
        let answer = Answer {
            text: response.answer.as_deref().unwrap_or_default(),
            thought: response.reasoning.clone(),
            tool_calls: self.calls(id)?,
            usage: response.call.usage,
            usage_id: response.call.usage.map(|_| id.clone()),
            model: response.call.model.as_deref(),
            interrupted: false,
        };
        builder.agent(id, answer);
        Ok(())
    }

    /// Returns a prompt with the fragments that the program puts before it.
    fn with_fragments(
        &self,
        table: &str,
        response: &str,
        prompt: Option<&str>,
    ) -> Result<Option<String>, ReadError> {
        let mut parts = match self.has_fragments {
            true => {
                let sql = format!(
                    "SELECT content FROM {table} JOIN fragments ON fragments.id = fragment_id \
                     WHERE response_id = ?1 ORDER BY \"order\""
                );
                self.database.texts(&sql, &[response])?
            }
            false => Vec::new(),
        };
        parts.extend(prompt.map(str::to_owned));
        Ok((!parts.is_empty()).then(|| parts.join("\n")))
    }

    fn attachments(&self, response: &str) -> Result<Vec<String>, ReadError> {
        if !self.has_attachments {
            return Ok(Vec::new());
        }
        let sql = "SELECT '[attachment: ' || COALESCE(path, url, type, attachment_id) || ']' \
                   FROM prompt_attachments JOIN attachments ON attachments.id = attachment_id \
                   WHERE response_id = ?1 ORDER BY \"order\"";
        self.database.texts(sql, &[response])
    }

    fn calls(&self, response: &str) -> Result<Vec<ToolCall>, ReadError> {
        let mut calls = Vec::new();
        for id in self.calls.get(response).into_iter().flatten() {
            let sql = "SELECT * FROM tool_calls WHERE id = CAST(?1 AS INTEGER)";
            self.database.rows(sql, &[id], &mut |row| {
                let id = row.text("tool_call_id").unwrap_or_default();
                let name = row.text("name").unwrap_or_else(|| "tool".to_owned());
                let arguments = row.text("arguments").unwrap_or_else(|| "{}".to_owned());
                calls.push(call_of_text(&id, &name, &arguments));
            })?;
        }
        Ok(calls)
    }

    fn results(&self, response: &str, builder: &mut SessionBuilder) -> Result<(), ReadError> {
        for number in self.results.get(response).into_iter().flatten() {
            let sql = "SELECT * FROM tool_results WHERE id = CAST(?1 AS INTEGER)";
            self.database.rows(sql, &[number], &mut |row| {
                let call = row.text("tool_call_id").unwrap_or_default();
                let exception = row.text("exception");
                let outcome = match exception {
                    None => ToolOutcome::Ok,
                    Some(_) => ToolOutcome::Failed,
                };
                let output = row.text("output").or(exception).unwrap_or_default();
                let id = format!("{response}#result{number}");
                builder.tool_result(&id, &call, &output, outcome);
            })?;
        }
        Ok(())
    }
}

/// Reads which rows, named `id`, belong to which `owner`.
fn belongings(database: &Database, sql: &str) -> Result<Belongings, ReadError> {
    let mut belongings = Belongings::new();
    database.rows(sql, &[], &mut |row| {
        if let (Some(id), Some(owner)) = (row.text("id"), row.text("owner")) {
            belongings.entry(owner).or_default().push(id);
        }
    })?;
    Ok(belongings)
}
