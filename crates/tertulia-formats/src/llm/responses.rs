//! The older tables: a response with its prompt per row. Results of tools belong to the prompt.

use super::Call;
use crate::importer::{Answer, Database, ReadError, Row, SessionBuilder, call_of_text};
use tertulia_core::entry::{ToolCall, ToolOutcome};

/// Reads the older tables.
pub(super) struct Responses<'a> {
    database: &'a Database,
    has_attachments: bool,
    has_fragments: bool,
    has_tools: bool,
}

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
        let found = Responses {
            database,
            has_attachments: database.has("prompt_attachments", "attachment_id")?,
            has_fragments: database.has("prompt_fragments", "fragment_id")?,
            has_tools: database.has("tool_results", "output")?,
        };
        let is_there = database.has("responses", "conversation_id")?;
        Ok(is_there.then_some(found))
    }

    /// Returns the ids of all conversations. A response without one is a conversation by itself.
    pub(super) fn conversations(&self) -> Result<Vec<String>, ReadError> {
        let sql = "SELECT DISTINCT COALESCE(conversation_id, id) FROM responses";
        self.database.texts(sql, &[])
    }

    /// Adds the messages of a conversation. Returns its title.
    pub(super) fn read(
        &self,
        conversation: &str,
        builder: &mut SessionBuilder,
    ) -> Result<Option<String>, ReadError> {
        let mut responses = Vec::new();
        self.database.rows(
            "SELECT * FROM responses WHERE COALESCE(conversation_id, id) = ?1 \
             ORDER BY datetime_utc, id",
            &[conversation],
            &mut |row| responses.push(Response::of(row)),
        )?;
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
        if self.has_tools {
            let sql = "SELECT * FROM tool_calls WHERE response_id = ?1 ORDER BY id";
            self.database.rows(sql, &[response], &mut |row| {
                let id = row.text("tool_call_id").unwrap_or_default();
                let name = row.text("name").unwrap_or_else(|| "tool".to_owned());
                let arguments = row.text("arguments").unwrap_or_else(|| "{}".to_owned());
                calls.push(call_of_text(&id, &name, &arguments));
            })?;
        }
        Ok(calls)
    }

    fn results(&self, response: &str, builder: &mut SessionBuilder) -> Result<(), ReadError> {
        if !self.has_tools {
            return Ok(());
        }
        let sql = "SELECT * FROM tool_results WHERE response_id = ?1 ORDER BY id";
        self.database.rows(sql, &[response], &mut |row| {
            let call = row.text("tool_call_id").unwrap_or_default();
            let exception = row.text("exception");
            let outcome = match exception {
                None => ToolOutcome::Ok,
                Some(_) => ToolOutcome::Failed,
            };
            let output = row.text("output").or(exception).unwrap_or_default();
            let number = row.text("id").unwrap_or_default();
            let id = format!("{response}#result{number}");
            builder.tool_result(&id, &call, &output, outcome);
        })
    }
}
