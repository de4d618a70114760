//! A fake agent for the Agent Client Protocol that does what the last line of a prompt says, so
//! that tests can use a real process. Its sessions are files in the given directory.
//!
//! ```text
//! acp_agent FOLDER [load] [late] [resume] [locked] [chatty] [behind] [free] [stubborn] [deletes] [for-good] [as:NAME]
//! ```

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio as Pipe};
use std::sync::Arc;
use std::{env, fs, future, process};

use agent_client_protocol::v1::schema::{
    CancelNotification, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ResumeSessionRequest, SetSessionModeRequest,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, Result, Stdio, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

struct Fake {
    folder: PathBuf,
    words: Vec<String>,
    /// Number of cancel notifications.
    stopped: watch::Sender<u32>,
}

fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let fake = Arc::new(Fake {
        folder: args.next().unwrap_or_default().into(),
        words: args.collect(),
        stopped: watch::Sender::new(0),
    });
    fake.note("starts", &process::id().to_string());
    if fake.is("chatty") {
        shout("Welcome to the fake agent!\n");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime
        .map_err(Error::into_internal_error)?
        .block_on(serve(fake))
}

async fn serve(fake: Arc<Fake>) -> Result<()> {
    let [a, b, c, d, e, f, g] = std::array::from_fn(|_| fake.clone());
    Agent
        .v1()
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| respond(responder, a.abilities()),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _| match b.is("locked") {
                true => responder.respond_with_error(Error::auth_required()),
                false => respond(responder, b.begin()),
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, client: ConnectionTo<Client>| {
                c.load(&request.session_id.0, responder, &client)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, _| {
                d.note("heard", "session/resume");
                match d.session(&request.session_id.0).exists() {
                    true => respond(responder, d.modes()),
                    false => responder.respond_with_error(Error::invalid_params()),
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, client: ConnectionTo<Client>| {
                let (fake, task) = (e.clone(), client.clone());
                client.spawn(async move { fake.prompt(request, responder, task).await })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, _| {
                f.note("heard", &format!("mode {}", request.mode_id.0));
                match f.is("stubborn") {
                    true => responder.respond_with_error(Error::invalid_params()),
                    false => respond(responder, json!({})),
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            // Not part of every protocol version, but in use.
            async move |request: UntypedMessage, responder: Responder<Value>, _| {
                let asked = format!("{} {}", request.method, request.params["modelId"]);
                g.note("heard", &asked);
                if request.method == "session/delete" {
                    let id = request.params["sessionId"].as_str().unwrap_or_default();
                    let _ = fs::remove_file(g.session(id));
                }
                responder.respond(json!({}))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _| {
                fake.note("heard", "session/cancel");
                fake.stopped.send_modify(|count| *count += 1);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}

fn respond<T: DeserializeOwned + agent_client_protocol::JsonRpcResponse>(
    responder: Responder<T>,
    answer: Value,
) -> Result<()> {
    responder.respond(serde_json::from_value(answer).map_err(Error::into_internal_error)?)
}

fn shout(words: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(words.as_bytes()).and_then(|()| out.flush());
}

impl Fake {
    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|given| given == word)
    }

    fn note(&self, file: &str, line: &str) {
        let mut options = fs::OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(self.folder.join(file));
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }

    fn session(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.session"))
    }

    fn abilities(&self) -> Value {
        let as_name = self.words.iter().find_map(|word| word.strip_prefix("as:"));
        let mut offers = json!({});
        for (word, name) in [("resume", "resume"), ("deletes", "delete")] {
            if self.is(word) {
                offers[name] = json!({});
            }
        }
        json!({
            "agentInfo": { "name": as_name.unwrap_or("fake"), "version": "1" },
            "protocolVersion": 1,
            "agentCapabilities": { "loadSession": self.is("load"), "sessionCapabilities": offers },
            "authMethods": [{ "id": "key", "name": "Fake key", "description": "set FAKE_KEY" }],
        })
    }

    fn begin(&self) -> Value {
        let id = format!("s{}", process::id());
        let _ = fs::write(self.session(&id), "");
        let mut told = self.modes();
        told["sessionId"] = json!(id);
        told["configOptions"] = json!([]);
        told
    }

    /// Returns the modes; none with `free`.
    fn modes(&self) -> Value {
        if self.is("free") {
            return json!({});
        }
        json!({ "modes": { "currentModeId": "agent", "availableModes": [
            { "id": "agent", "name": "Agent" }, { "id": "default", "name": "Ask" },
        ]}})
    }

    fn load(
        &self,
        id: &str,
        responder: Responder<impl DeserializeOwned + agent_client_protocol::JsonRpcResponse>,
        client: &ConnectionTo<Client>,
    ) -> Result<()> {
        self.note("heard", "session/load");
        let Ok(said) = fs::read_to_string(self.session(id)) else {
            return responder.respond_with_error(Error::internal_error());
        };
        replay(client, id, "user_message_chunk", &said)?;
        if self.is("late") {
            respond(responder, self.modes())?;
            let (id, late) = (id.to_owned(), client.clone());
            return client.spawn(async move {
                // A response to this shows that the client has read the one above.
                flushed(&late, &id).await;
                replay(
                    &late,
                    &id,
                    "agent_message_chunk",
                    "old words, replayed late",
                )
            });
        }
        replay(client, id, "agent_message_chunk", "old words")?;
        respond(responder, self.modes())
    }

    /// Waits for a cancel notification.
    async fn told_to_stop(&self) {
        let mut stopped = self.stopped.subscribe();
        let _ = stopped.changed().await;
    }

    async fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<impl DeserializeOwned + agent_client_protocol::JsonRpcResponse>,
        client: ConnectionTo<Client>,
    ) -> Result<()> {
        let request = serde_json::to_value(request).map_err(Error::into_internal_error)?;
        let id = request["sessionId"].as_str().unwrap_or_default();
        let words = request["prompt"][0]["text"].as_str().unwrap_or_default();
        self.note(&format!("{id}.session"), &format!("{words:?}"));
        if self.is("behind") && *self.stopped.borrow() > 0 {
            // Simulates an agent that takes the end of the cancelled turn for the end of this one.
            respond(responder, json!({ "stopReason": "end_turn" }))?;
            flushed(&client, id).await;
            return replay(&client, id, "agent_message_chunk", words);
        }
        let order = words.lines().last().unwrap_or_default();
        let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
        let say = |words: &str| {
            let content = json!({ "type": "text", "text": words });
            let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
            update(&client, id, chunk)
        };
        let reason = match verb {
            "recall" => {
                say(&fs::read_to_string(self.session(id)).unwrap_or_default())?;
                "end_turn"
            }
            "plan" => {
                let entry = |content, status| json!({ "content": content, "priority": "low", "status": status });
                let entries = json!([entry("look", "completed"), entry("write", "in_progress")]);
                update(
                    &client,
                    id,
                    json!({ "sessionUpdate": "plan", "entries": entries }),
                )?;
                say("planned")?;
                "end_turn"
            }
            "tool" => self.tool(id, rest, &client).await?,
            "sneak" => {
                sneak(id, rest, &client)?;
                say("done")?;
                "end_turn"
            }
            "hang" => {
                say("thinking")?;
                self.told_to_stop().await;
                "cancelled"
            }
            "deaf" | "exit" | "flood" | "rubbish" => misbehave(verb, rest, id, &client).await?,
            "error" => {
                let (code, message) = rest.split_once(' ').unwrap_or(("0", rest));
                let code: i32 = code.parse().unwrap_or(0);
                return responder.respond_with_error(Error::new(code, message));
            }
            "big" => {
                for part in 0..2000 {
                    say(&format!("{part} {}\n", "x".repeat(500)))?;
                }
                "end_turn"
            }
            "refusal" | "max_tokens" => verb,
            _ => {
                say(order)?;
                "end_turn"
            }
        };
        let count = json!({ "input_tokens": 4, "output_tokens": 3 });
        let quota = json!({ "quota": { "token_count": count } });
        respond(responder, json!({ "stopReason": reason, "_meta": quota }))
    }

    /// Requests permission with option ids that contradict their meaning, and reports which was
    /// chosen.
    async fn tool(
        &self,
        id: &str,
        kind: &str,
        client: &ConnectionTo<Client>,
    ) -> Result<&'static str> {
        let call = json!({ "toolCallId": "call-1", "title": format!("do {kind}"), "kind": kind,
            "status": "pending", "rawInput": { "command": format!("do {kind}") } });
        let mut started = call.clone();
        started["sessionUpdate"] = json!("tool_call");
        update(client, id, started)?;
        let mut options = json!([
            { "optionId": "yes", "name": "Never", "kind": "reject_once" },
            { "optionId": "no", "name": "Once", "kind": "allow_once" },
            { "optionId": "cancel", "name": "Always", "kind": "allow_always" },
        ]);
        if self.is("for-good") {
            options = json!([options[0], options[2]]);
        }
        let params = json!({ "sessionId": id, "toolCall": call, "options": options });
        let asked = UntypedMessage::new("session/request_permission", params)?;
        let answer = client.send_request(asked).block_task().await?;
        let chosen = answer["outcome"]["optionId"]
            .as_str()
            .unwrap_or("cancelled");
        self.note("heard", &format!("leave {chosen}"));
        if chosen == "cancelled" {
            return Ok("cancelled");
        }
        let done = match chosen {
            "yes" => "failed",
            _ => "completed",
        };
        let output = json!([{ "type": "content", "content": { "type": "text", "text": chosen } }]);
        update(
            client,
            id,
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": done, "content": output }),
        )?;
        Ok("end_turn")
    }
}

/// Runs a tool without asking.
fn sneak(id: &str, kind: &str, client: &ConnectionTo<Client>) -> Result<()> {
    let output = json!([{ "type": "content", "content": { "type": "text", "text": "it ran" } }]);
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "call-2", "title": format!("do {kind}"),
        "kind": kind, "status": "in_progress", "rawInput": { "command": format!("do {kind}") } });
    update(client, id, call)?;
    update(
        client,
        id,
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-2", "status": "completed", "content": output }),
    )
}

fn update(client: &ConnectionTo<Client>, session: &str, update: Value) -> Result<()> {
    let params = json!({ "sessionId": session, "update": update });
    client.send_notification(UntypedMessage::new("session/update", params)?)
}

fn replay(client: &ConnectionTo<Client>, id: &str, chunk: &str, words: &str) -> Result<()> {
    let content = json!({ "type": "text", "text": words });
    update(
        client,
        id,
        json!({ "sessionUpdate": chunk, "content": content }),
    )
}

/// Misbehaves in the given way. Does not return, except on errors.
async fn misbehave(
    how: &str,
    rest: &str,
    id: &str,
    client: &ConnectionTo<Client>,
) -> Result<&'static str> {
    let chunk = |words: &str| {
        let content = json!({ "type": "text", "text": words });
        json!({ "sessionUpdate": "agent_message_chunk", "content": content })
    };
    match how {
        "deaf" => {
            let mut child = Command::new("setsid");
            child.args(["sleep", "1000"]).stdin(Pipe::null());
            let spawned = child.stdout(Pipe::null()).stderr(Pipe::null()).spawn();
            let words = format!("deaf with a child: {}", spawned.is_ok());
            update(client, id, chunk(&words))?;
        }
        "exit" => {
            let _ = std::io::stderr().write_all(b"the engine fell out\n");
            update(client, id, chunk("half an ans"))?;
            // Ensures that the text is sent before the process exits.
            flushed(client, id).await;
            process::exit(rest.parse().unwrap_or(1))
        }
        "flood" => {
            let params = json!({ "sessionId": id, "update": chunk(&"x".repeat(500)) });
            let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
            loop {
                shout(&format!("{line}\n"));
            }
        }
        _ => shout(&"<html>not json</html>\n".repeat(100)),
    }
    future::pending().await
}

/// Waits until everything sent before has arrived, by waiting for the response to a request.
async fn flushed(client: &ConnectionTo<Client>, id: &str) {
    let request = UntypedMessage::new("no/such/method", json!({ "sessionId": id }));
    if let Ok(request) = request {
        let _ = client.send_request(request).block_task().await;
    }
}
