//! Opens a session with an agent: handshake, new or resumed session, model and mode.

use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::Acp;
use super::adapter::{self, Adapter, Asking};
use super::habits;
use super::live::{Live, Unanswered};
use super::watch::{End, Lost, Watch};
use crate::approval::Approval;
use crate::folder::Folder;
use crate::{AgentEvent, AgentRequest, FailureKind, NativeSession, PromptMessage, prompt};

/// Supported version of the protocol.
const VERSION: u64 = 1;
/// Time limit for deleting a session.
const DELETE: Duration = Duration::from_secs(3);

/// A session that the agent has open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) id: String,
    /// Modes that it offers, and the current one.
    modes: Value,
    /// Whether the agent asks permission in it.
    asks: bool,
}

/// Session for the prompt, and how many of the messages the agent has seen; `None` in a new
/// session.
pub(super) struct Place {
    pub(super) session: String,
    pub(super) known: Option<usize>,
}

/// Opens the session for the request.
pub(super) async fn open(
    acp: &Acp,
    live: &mut Live,
    question: &AgentRequest,
    watch: &Watch<'_>,
) -> Result<Place, End> {
    if live.abilities.is_none() {
        live.abilities = Some(greet(live, watch).await?);
    }
    let native = match question.native.as_ref() {
        Some(native) => match Folder::of(native, Some(&acp.work_dir)) {
            folder @ Folder::Gone(_) => {
                watch.remark(folder.remark(&acp.name)).await?;
                None
            }
            _ => Some(native),
        },
        None => None,
    };
    let (session, known) = match native {
        Some(native)
            if live
                .session
                .as_ref()
                .is_some_and(|open| open.id == native.id) =>
        {
            (native.id.clone(), Some(native.known))
        }
        Some(native) => match again(acp, live, native, watch).await? {
            Some(told) => (
                adopt(acp, live, &native.id, told, watch).await?,
                Some(native.known),
            ),
            None => {
                let lost = format!(
                    "{} has lost its own session: sending the whole conversation again",
                    acp.name
                );
                watch.say(AgentEvent::Remark(lost)).await?;
                (begin(acp, live, watch).await?, None)
            }
        },
        None => (begin(acp, live, watch).await?, None),
    };
    if question.approval != Approval::All {
        make_it_ask(acp, live, watch).await?;
    }
    Ok(Place { session, known })
}

/// Returns the parameters of `initialize`.
pub(super) fn greeting() -> Value {
    // The agent's own access to files and terminals works better than the client's, and one agent
    // cannot create files when the client offers its own.
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
        },
        "clientInfo": {
            "name": "tertulia",
            "title": "tertulia",
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}

async fn greet(live: &Live, watch: &Watch<'_>) -> Result<Value, End> {
    let told = match watch.over(live, live.ask("initialize", greeting())).await {
        Ok(told) => told,
        Err(End::Told(error)) if error.kind != FailureKind::Auth => {
            return Err(End::Lost(Lost::Unfit(error.message)));
        }
        Err(other) => return Err(other),
    };
    match &told["protocolVersion"] {
        version if *version == VERSION => Ok(told),
        other => Err(End::Lost(Lost::Unfit(format!("its version is {other}")))),
    }
}

/// Resumes an old session, if the agent can and still has it.
async fn again(
    acp: &Acp,
    live: &Live,
    native: &NativeSession,
    watch: &Watch<'_>,
) -> Result<Option<Value>, End> {
    let abilities = live
        .abilities
        .as_ref()
        .map(|told| &told["agentCapabilities"]);
    let abilities = abilities.unwrap_or(&Value::Null);
    let resumes = offered(&abilities["sessionCapabilities"]["resume"]);
    let method = match (resumes, offered(&abilities["loadSession"])) {
        (true, _) => "session/resume",
        (false, true) => "session/load",
        (false, false) => return Ok(None),
    };
    let folder = Folder::of(native, Some(&acp.work_dir));
    watch.remark(folder.remark(&acp.name)).await?;
    let cwd = match &folder {
        Folder::Other(folder) => folder,
        Folder::Own | Folder::Gone(_) => &acp.work_dir,
    };
    let params = json!({
        "sessionId": native.id, "cwd": cwd, "mcpServers": [],
    });
    match watch.over(live, live.ask(method, params)).await {
        Ok(told) => {
            if !resumes {
                let quiet = async {
                    live.settle().await;
                    Ok(())
                };
                watch.over(live, quiet).await?;
            }
            Ok(Some(told))
        }
        Err(End::Told(error)) if error.kind != FailureKind::Auth => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns whether a capability is offered: agents send `true`, or an object that may be empty.
fn offered(ability: &Value) -> bool {
    ability.is_object() || *ability == true
}

async fn begin(acp: &Acp, live: &mut Live, watch: &Watch<'_>) -> Result<String, End> {
    let mut params = json!({ "cwd": acp.work_dir, "mcpServers": [] });
    if live.manner.ephemeral {
        // The adapters of Claude Code pass it on; other agents ignore it.
        params["_meta"] = json!({ "claudeCode": { "options": { "persistSession": false } } });
    }
    let told = watch.over(live, live.ask("session/new", params)).await?;
    let Some(id) = told["sessionId"].as_str().map(str::to_owned) else {
        return Err(End::Lost(Lost::Unfit("its session has no id".to_owned())));
    };
    watch.say(AgentEvent::Session(id.clone())).await?;
    adopt(acp, live, &id, told, watch).await
}

async fn adopt(
    acp: &Acp,
    live: &mut Live,
    id: &str,
    told: Value,
    watch: &Watch<'_>,
) -> Result<String, End> {
    live.session = Some(Open {
        id: id.to_owned(),
        modes: told["modes"].clone(),
        asks: false,
    });
    if let Some(model) = &acp.model {
        choose_model(acp, live, id, model, &told, watch).await?;
    }
    Ok(id.to_owned())
}

async fn choose_model(
    acp: &Acp,
    live: &Live,
    id: &str,
    model: &str,
    told: &Value,
    watch: &Watch<'_>,
) -> Result<(), End> {
    let remark = match model_request(id, model, told) {
        Model::Chosen => return Ok(()),
        Model::Ask(method, params) => match watch.over(live, live.ask(method, params)).await {
            Ok(_) => return Ok(()),
            Err(End::Told(error)) => {
                format!("{} does not take the model {model}: {error}", acp.name)
            }
            Err(lost) => return Err(lost),
        },
        Model::NotOffered => format!(
            "{} does not offer the model {model}: it uses its own",
            acp.name
        ),
    };
    watch.say(AgentEvent::Remark(remark)).await
}

#[derive(Debug, PartialEq)]
enum Model {
    /// The model is in use already.
    Chosen,
    /// This request selects the model.
    Ask(&'static str, Value),
    NotOffered,
}

fn model_request(session: &str, model: &str, told: &Value) -> Model {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for option in all(&told["configOptions"]) {
        let about_models = option["category"] == "model" || option["id"] == "model";
        // Options may be grouped.
        let named = all(&option["options"]).iter().any(|choice| {
            choice["value"] == model || all(&choice["options"]).iter().any(|c| c["value"] == model)
        });
        if about_models && option["currentValue"] == model {
            return Model::Chosen;
        }
        if about_models && named {
            let params = json!({ "sessionId": session, "configId": option["id"], "value": model });
            return Model::Ask("session/set_config_option", params);
        }
    }
    if told["models"]["currentModelId"] == model {
        return Model::Chosen;
    }
    let models = all(&told["models"]["availableModels"]);
    if models.iter().any(|offer| offer["modelId"] == model) {
        let params = json!({ "sessionId": session, "modelId": model });
        return Model::Ask("session/set_model", params);
    }
    Model::NotOffered
}

/// Switches the session to a mode in which the agent asks: without a request nothing can be denied.
async fn make_it_ask(acp: &Acp, live: &mut Live, watch: &Watch<'_>) -> Result<(), End> {
    let Some(open) = live.session.clone().filter(|open| !open.asks) else {
        return Ok(());
    };
    let asking = match acp.adapter() {
        _ if acp.asks => Asking::Already,
        Some(Adapter::OpenCode) => adapter::opencode_asking(live.abilities.as_ref()),
        _ => adapter::asking(&open.modes),
    };
    match asking {
        Asking::Already => {}
        Asking::InMode(mode) => {
            let params = json!({ "sessionId": open.id, "modeId": mode });
            match watch.over(live, live.ask("session/set_mode", params)).await {
                Ok(_) => {}
                Err(End::Told(error)) => return Err(End::Told(acp.does_not_ask(Some(&error)))),
                Err(lost) => return Err(lost),
            }
        }
        Asking::Unknown => return Err(End::Told(acp.does_not_ask(None))),
    }
    live.session = Some(Open { asks: true, ..open });
    Ok(())
}

/// Makes the agent delete the session that it has open, if it can.
pub(super) async fn delete(live: &mut Live) {
    let abilities = live.abilities.as_ref();
    let can = abilities
        .is_some_and(|told| offered(&told["agentCapabilities"]["sessionCapabilities"]["delete"]));
    if let Some(open) = live.session.take().filter(|_| can) {
        let params = json!({ "sessionId": open.id });
        // Failure is ignored: there is nothing else to try.
        let _ = timeout(DELETE, live.ask("session/delete", params)).await;
    }
}

/// Builds the prompt: messages that the agent has not seen yet, and in a new session the system
/// text.
pub(super) fn words(
    acp: &Acp,
    live: &Live,
    messages: &[PromptMessage],
    known: Option<usize>,
) -> String {
    match known {
        Some(known) => {
            let recall = habits::recall(live.abilities.as_ref());
            let told = prompt::unheard(&acp.name, messages, known, recall);
            prompt::talk(&acp.name, None, &told)
        }
        None => prompt::talk(&acp.name, acp.system.as_deref(), messages),
    }
}

impl From<Unanswered> for End {
    fn from(why: Unanswered) -> End {
        match why {
            Unanswered::Told(error) => End::Told(error),
            Unanswered::Gone => End::Lost(Lost::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_chosen_the_way_that_is_offered() {
        let options = json!({ "configOptions": [
            { "id": "effort", "category": "thought_level", "options": [{ "value": "opus" }] },
            { "id": "m", "category": "model", "currentValue": "opus",
              "options": [{ "value": "opus" }, { "group": "g", "options": [{ "value": "haiku" }] }] },
        ]});
        let Model::Ask(method, params) = model_request("s", "haiku", &options) else {
            panic!("not asked")
        };
        assert_eq!(
            (method, &params["configId"]),
            ("session/set_config_option", &json!("m"))
        );
        assert_eq!(model_request("s", "opus", &options), Model::Chosen);
        assert_eq!(model_request("s", "other", &options), Model::NotOffered);
        let list =
            json!({ "models": { "currentModelId": "a", "availableModels": [{ "modelId": "b" }] } });
        let params = json!({ "sessionId": "s", "modelId": "b" });
        assert_eq!(
            model_request("s", "b", &list),
            Model::Ask("session/set_model", params)
        );
        assert_eq!(model_request("s", "a", &list), Model::Chosen);
    }
}
