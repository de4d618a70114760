//! The built-in demo agent: deterministic and without dependencies, so that the first run on a bare
//! machine shows the product working.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Part,
    PromptMessage, Readiness, ToolSide,
};
use tertulia_core::entry::{Role, ToolCall, Usage};
use tertulia_core::pair::PairRole;

/// Model name that the demo reports.
const MODEL: &str = "demo-1";

/// Prefix of a worker's message in an instructor's prompt.
const WORKER_SAYS: &str = "Worker says:";

/// The demo agent.
#[derive(Clone, Debug)]
pub struct Demo {
    name: String,
    pace: Duration,
}

impl Demo {
    /// Creates a demo agent that speaks under `name` and pauses for `pace` after each word.
    pub fn new(name: &str, pace: Duration) -> Demo {
        Demo {
            name: name.to_owned(),
            pace,
        }
    }
}

#[async_trait]
impl Agent for Demo {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Option<&str> {
        Some(MODEL)
    }

    fn tools(&self) -> ToolSide {
        ToolSide::Ours
    }

    async fn readiness(&self) -> Readiness {
        Readiness::Ready(Some("built in".into()))
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(vec![MODEL.to_owned()])
    }

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        if let Some(call) = wanted_tool(question) {
            sink.say(AgentEvent::Text(format!("I use {}. ", call.name)))
                .await?;
            let spoken = words(&call.arguments.to_string()) + 3;
            let usage = Usage::told(input(question), spoken);
            sink.say(AgentEvent::Usage(usage)).await?;
            let calls = vec![call];
            return Ok(Outcome::Calls { calls, memo: None });
        }
        let answer = match &question.part {
            Some(part) => handed_over(reply(question)?, part),
            None => reply(question)?,
        };
        for word in answer.split_inclusive([' ', '\n']) {
            sink.check()?;
            sink.say(AgentEvent::Text(word.to_owned())).await?;
            if !self.pace.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(self.pace) => {}
                    () = sink.cancel().cancelled() => return Err(AgentError::cancelled()),
                }
            }
        }
        let usage = Usage::told(input(question), words(&answer));
        sink.say(AgentEvent::Usage(usage)).await?;
        Ok(Outcome::Done)
    }
}

/// Counts words: the demo's tokens.
fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn input(question: &AgentRequest) -> u64 {
    question
        .messages
        .iter()
        .map(|message| words(&message.content))
        .sum()
}

/// Parses `use shell {"command": "ls"}` as a tool call, so that tools can be tried without a model.
fn wanted_tool(question: &AgentRequest) -> Option<ToolCall> {
    let last = question.messages.last()?;
    let words = said(question).strip_prefix("use ")?;
    let (name, arguments) = words.split_once(' ').unwrap_or((words, "{}"));
    let offered = question.tools.iter().any(|tool| tool.name == name);
    if last.role != Role::User || !offered {
        return None;
    }
    Some(ToolCall {
        id: format!("demo-{}", question.total),
        name: name.to_owned(),
        arguments: serde_json::from_str(arguments).ok()?,
    })
}

/// Returns the text to answer.
fn said(question: &AgentRequest) -> &str {
    match (&question.part, question.messages.last()) {
        (Some(part), _) => part.words.trim(),
        (None, Some(last)) => last.content.trim(),
        (None, None) => "",
    }
}

/// Appends the `[NEXT]` marker that hands over to the members that the demo's instructions name.
fn handed_over(answer: String, part: &Part) -> String {
    if part.next.is_empty() {
        return answer;
    }
    format!("{answer}\n\n[NEXT: {}]", part.next.join(", "))
}

/// Returns the demo's answer in a team, by the role that its instructions mention first.
fn in_role(part: &Part) -> String {
    let system = part.system.to_lowercase();
    let roles = ["author", "review", "test"].into_iter();
    let named = roles.filter_map(|role| Some((system.find(role)?, role)));
    let topic = first_words(part.words.trim());
    match named.min() {
        Some((_, "author")) => format!(
            "For “{topic}” I propose three steps: agree on what done looks like, make the smallest version \
             that works, then show it to somebody who was not there."
        ),
        Some((_, "review")) => format!(
            "I have read what {} said. Each step needs a name next to it and a way to tell that it is done; \
             otherwise I agree.",
            part.from
        ),
        Some(_) => "I would try it with nothing, with one and with far too many, and write down what happened \
             each time."
            .to_owned(),
        None => format!("{} said: “{topic}”. I am here and listening.", part.from),
    }
}

/// Returns the demo's answer as an instructor: two instructions, then that the task is done.
fn instructed(question: &AgentRequest) -> String {
    let said = |message: &&PromptMessage| message.role == Role::User;
    let heard: Vec<&PromptMessage> = question.messages.iter().filter(said).collect();
    let reports = heard
        .iter()
        .rev()
        .take_while(|message| message.content.starts_with(WORKER_SAYS))
        .count();
    let task = heard.iter().rev().nth(reports);
    let topic = first_words(task.map_or("", |message| message.content.trim()));
    match reports {
        0 => format!(
            "I take this in two steps: a plan, then the work.\n\n\
             Tell worker: Write down in three short steps how you would do this: {topic}"
        ),
        1 => "The plan will do.\n\nTell worker: Do the first step of your plan, and say how you know that it is done."
            .to_owned(),
        _ => format!("Both steps are done and reported: {topic}\n\nDONE"),
    }
}

/// Returns the demo's answer as a worker.
fn worked(part: &Part) -> String {
    let topic = first_words(part.words.trim());
    if part.words.contains("three short steps") {
        return format!(
            "1. Look at what is there. 2. Make the smallest version that works. 3. Try it.\n\n(For: “{topic}”)"
        );
    }
    format!(
        "I did what you told me: “{topic}”. I am the demo, so nothing in the folder has changed."
    )
}

/// Returns the demo's answer: a pure function of the request.
fn reply(question: &AgentRequest) -> Result<String, AgentError> {
    let last = question.messages.last();
    if let Some(result) = last.filter(|message| message.role == Role::Tool) {
        return Ok(format!("The tool said:\n\n{}", result.content));
    }
    let said = said(question);
    if said.starts_with("Summarise our conversation") {
        return Ok(memories(question));
    }
    let lower = said.to_lowercase();
    if let Some(text) = said.strip_prefix("echo ") {
        return Ok(text.to_owned());
    }
    if let Some(count) = lower
        .strip_prefix("count to ")
        .and_then(|n| n.trim().parse::<u32>().ok())
    {
        let numbers: Vec<String> = (1..=count.min(200_000)).map(|n| n.to_string()).collect();
        return Ok(numbers.join(" "));
    }
    if lower == "fail" {
        return Err(
            AgentError::new(FailureKind::Failed, "the demo failed, as it was asked to")
                .hint("say anything else and it answers"),
        );
    }
    let remembers = lower.contains("remember") || lower.contains("what did i say");
    if remembers && question.part.is_none() {
        return Ok(memories(question));
    }
    match &question.part {
        Some(part) if part.role == Some(PairRole::Instructor) => return Ok(instructed(question)),
        Some(part) if part.role == Some(PairRole::Worker) => return Ok(worked(part)),
        Some(part) => return Ok(in_role(part)),
        None => {}
    }
    if ["hello", "hi", "hola", "hey"].contains(&lower.trim_end_matches(['!', '.', '?', ','])) {
        return Ok(format!(
            "Hello! I am the demo agent: I live inside tertulia and need no key and no network.\n\n\
             {} {}\n\n\
             Try `count to 20`, `what did I say?`, `echo` and some words, or \
             `use directory_list {{}}`. \
             `/agents` (in the shell `tertulia agents`) shows who else could be here.",
            match question.ephemeral {
                true => "Nothing that we say is kept.",
                false => "Every word is saved before I answer, and you are told if it cannot be.",
            },
            progress(question)
        ));
    }
    Ok(format!(
        "You said: “{}”. {}",
        first_words(said),
        progress(question)
    ))
}

fn progress(question: &AgentRequest) -> String {
    match question.total.max(question.messages.len() as u64) {
        0 | 1 => "This is the first message of our session.".to_owned(),
        total => format!("Our session has {total} messages so far."),
    }
}

fn memories(question: &AgentRequest) -> String {
    let said: Vec<&str> = question
        .messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.content.as_str())
        .collect();
    let earlier = &said[..said.len().saturating_sub(1)];
    if let [team] = said[..]
        && let Some(text) = team_memories(team)
    {
        return text;
    }
    if earlier.is_empty() {
        return "You have said nothing before this.".to_owned();
    }
    let mut text = String::from("You said:\n");
    for (number, words) in earlier.iter().enumerate() {
        text.push_str(&format!("\n{}. {}", number + 1, first_words(words)));
    }
    text
}

/// Returns the demo's summary of a team's messages, which the request contains after the summary of
/// what was before them.
fn team_memories(request: &str) -> Option<String> {
    let (before, messages) = request.split_once("\n# Messages\n")?;
    let before = before.split_once("\n# Summary of what was before\n");
    let before = before.map_or("Said so far:", |(_, before)| before.trim());
    let said = messages.lines().filter_map(|line| line.strip_prefix("- "));
    let said = said.map(|line| format!("\n- {}", first_words(line)));
    Some(format!("{before}{}", said.collect::<String>()))
}

fn first_words(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.chars().count() <= 80 {
        true if line.len() == text.len() => line.to_owned(),
        true => format!("{line}…"),
        false => {
            // No piece of a word: a piece of a secret is not recognised as one any more.
            let begin: String = line.chars().take(79).collect();
            let begin = begin.trim_end_matches(|c: char| c.is_ascii_graphic());
            format!("{}…", begin.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_is_summed_up_on_top_of_what_was_before() {
        let first = "Summarise our conversation in this team so far.\n\n# Messages\n\n- Ann -> all: Tea?\n\n- Ben -> all: Yes.\nOr not.";
        let summary = team_memories(first).unwrap();
        assert_eq!(
            summary,
            "Said so far:\n- Ann -> all: Tea?\n- Ben -> all: Yes."
        );
        let second = format!(
            "Summarise.\n\n# Summary of what was before\n\n{summary}\n\n# Messages\n\n- Ann -> all: Go."
        );
        let expected = format!("{summary}\n- Ann -> all: Go.");
        assert_eq!(team_memories(&second), Some(expected));
        assert_eq!(team_memories("Summarise our conversation so far."), None);
    }

    #[test]
    fn what_is_quoted_has_no_piece_of_a_word() {
        let check = |text: &str, expected: &str| assert_eq!(first_words(text), expected);
        check("a b", "a b");
        let secret = "x".repeat(90);
        check(&format!("the key is {secret}"), "the key is…");
        check(&secret, "…");
        check(&"漢".repeat(90), &format!("{}…", "漢".repeat(79)));
        check("one line\nand more", "one line…");
    }

    fn question(said: &[&str]) -> AgentRequest {
        let messages = said
            .iter()
            .enumerate()
            .map(|(at, content)| {
                let role = if at % 2 == 0 {
                    Role::User
                } else {
                    Role::Assistant
                };
                PromptMessage::plain(role, "x", *content)
            })
            .collect();
        AgentRequest {
            messages,
            total: said.len() as u64,
            ..AgentRequest::default()
        }
    }

    #[test]
    fn tools_are_asked_for_and_their_results_told() {
        let shell = super::super::ToolSpec {
            name: "shell".into(),
            description: String::new(),
            parameters: serde_json::json!({}),
        };
        let mut asked = question(&[r#"use shell {"command": "ls"}"#]);
        assert_eq!(wanted_tool(&asked), None);
        asked.tools.push(shell);
        let call = wanted_tool(&asked).unwrap();
        assert_eq!(
            (call.name.as_str(), call.arguments["command"].as_str()),
            ("shell", Some("ls"))
        );
        asked
            .messages
            .push(PromptMessage::plain(Role::Tool, "shell", "a.txt"));
        assert_eq!(wanted_tool(&asked), None);
        assert_eq!(reply(&asked).unwrap(), "The tool said:\n\na.txt");
    }

    #[test]
    fn in_a_team_it_plays_its_part_and_hands_over() {
        let mut asked = question(&["everything as one text"]);
        asked.part = Some(Part {
            system: "You are Ben, the reviewer.".into(),
            from: "Ada".into(),
            words: "echo   fn main() {}".into(),
            next: vec!["cleo".into()],
            ..Part::default()
        });
        let said =
            |asked: &AgentRequest| handed_over(reply(asked).unwrap(), asked.part.as_ref().unwrap());
        assert_eq!(said(&asked), "  fn main() {}\n\n[NEXT: cleo]");
        let part = asked.part.as_mut().unwrap();
        part.words = "one two".into();
        part.next.clear();
        assert!(said(&asked).starts_with("I have read what Ada said."));
    }

    #[test]
    fn as_an_instructor_it_comes_to_an_end() {
        let said = |said: &[&str]| {
            let mut asked = question(said);
            asked.part = Some(Part {
                role: Some(PairRole::Instructor),
                words: said.last().unwrap().to_string(),
                ..Part::default()
            });
            reply(&asked).unwrap()
        };
        let first = said(&["bake bread"]);
        assert!(first.contains("Tell worker: ") && first.ends_with("bake bread"));
        assert!(said(&["x", "y", "bake", "z", "Worker says: a"]).contains("Tell worker: Do"));
        let last = said(&["bake", "z", "Worker says: a", "z", "Worker says: b"]);
        assert!(
            last.contains("bake") && last.ends_with("\n\nDONE"),
            "{last}"
        );
    }

    fn check(said: &[&str], expected: &str) {
        assert_eq!(reply(&question(said)).unwrap(), expected);
    }

    #[test]
    fn answers_are_a_function_of_the_talk() {
        check(&["echo  a\n  b"], " a\n  b");
        check(&["count to 5"], "1 2 3 4 5");
        check(
            &["good day"],
            "You said: “good day”. This is the first message of our session.",
        );
        check(
            &["a", "b", "good day"],
            "You said: “good day”. Our session has 3 messages so far.",
        );
        check(
            &["one", "x", "two", "x", "what did I say?"],
            "You said:\n\n1. one\n2. two",
        );
        check(&["remember?"], "You have said nothing before this.");
        assert!(reply(&question(&["Hello!"])).unwrap().starts_with("Hello!"));
        assert_eq!(
            reply(&question(&["fail"])).unwrap_err().kind,
            FailureKind::Failed
        );
    }
}
