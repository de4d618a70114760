//! Sends an answer, or fails as directed.

use std::io;
use std::time::Duration;

use super::http::{Line, Whole};
use super::script::{Failure, Kind, Script};
use super::talk::{Reply, Talk};
use super::wire::{Frame, Part, Refused, Wire};
use super::{Request, State, wire};

/// Default number of tokens before a failure within an answer.
const BEFORE_FAILURE: usize = 2;

/// State of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another request may follow.
    Listen,
    /// The connection is closed.
    HangUp,
}

/// Answers a request. Fails if the client disconnects before the end of the answer.
pub fn answer(
    line: &mut Line,
    request: &Request,
    number: usize,
    state: &State,
) -> io::Result<Next> {
    let wire = wire::of(request.api);
    if request.method == "GET" {
        return match wire.look_up(request) {
            Ok(document) => document_of(line, 200, &document),
            Err(refused) => refuse(line, wire, &refused),
        };
    }
    let understood = wire.read(request).and_then(|talk| {
        let script = Script::read(talk.directives());
        let script = script.map_err(|words| Refused::new(400, words))?;
        Ok((talk, script))
    });
    let (talk, mut script) = match understood {
        Ok(understood) => understood,
        Err(refused) => return refuse(line, wire, &refused),
    };
    if is_too_long(&talk.model, request) {
        return refuse(line, wire, &Refused::new(400, wire.overflow()));
    }
    let failure = script.failure.take();
    let failure = failure.filter(|failure| state.fails(request.api, talk.prompt(), failure.times));
    script.failure.clone_from(&failure);
    if let Some(failure) = &failure
        && let Some(end) = fail_at_once(line, wire, request, &talk, failure)
    {
        return end;
    }
    let reply = talk.reply(&script, number);
    let failure = failure.filter(|failure| failure.kind != Kind::Refusal);
    if talk.stream {
        let frames = wire.frames(&talk, &reply);
        return stream(line, wire, &frames, failure.as_ref(), script.delay);
    }
    whole(line, wire, &reply, failure.as_ref(), script.delay)
}

/// Returns true if the request exceeds the model's limit: `reads-4000` accepts this many bytes, not
/// counting tools.
fn is_too_long(model: &str, request: &Request) -> bool {
    let limit = model.strip_prefix("reads-");
    let Some(limit) = limit.and_then(|limit| limit.parse().ok()) else {
        return false;
    };
    let mut body = request.body.clone();
    body["tools"] = serde_json::Value::Null;
    body.to_string().len() > limit
}

/// Sends the failures that replace an answer.
fn fail_at_once(
    line: &mut Line,
    wire: &dyn Wire,
    request: &Request,
    talk: &Talk,
    failure: &Failure,
) -> Option<io::Result<Next>> {
    Some(match failure.kind {
        Kind::Status(status) => {
            let words = wire.complaint(status, &talk.model, request.key().unwrap_or_default());
            let body = wire.error(status, &words).to_string();
            let answer = Whole {
                retry_after: failure.retry_after.as_deref(),
                ..Whole::json(status, body.as_bytes())
            };
            line.respond(&answer).map(|()| Next::Listen)
        }
        Kind::Overflow => refuse(line, wire, &Refused::new(400, wire.overflow())),
        Kind::Html => page(line, 502, "<h1>502 Bad Gateway</h1>"),
        Kind::Portal => page(line, 200, "<h1>Log in to the network</h1>"),
        Kind::Drop0 => Ok(Next::HangUp),
        Kind::Hang => Err(line.stall()),
        _ => return None,
    })
}

fn refuse(line: &mut Line, wire: &dyn Wire, refused: &Refused) -> io::Result<Next> {
    let body = wire.error(refused.status, &refused.message);
    document_of(line, refused.status, &body)
}

fn document_of(line: &mut Line, status: u16, body: &serde_json::Value) -> io::Result<Next> {
    line.respond(&Whole::json(status, body.to_string().as_bytes()))?;
    Ok(Next::Listen)
}

fn page(line: &mut Line, status: u16, heading: &str) -> io::Result<Next> {
    let body = format!("<!DOCTYPE html>\n<html><body>{heading}</body></html>\n");
    line.respond(&Whole {
        content_type: "text/html",
        ..Whole::json(status, body.as_bytes())
    })?;
    Ok(Next::Listen)
}

/// Sends a streamed answer.
fn stream(
    line: &mut Line,
    wire: &dyn Wire,
    frames: &[Frame],
    failure: Option<&Failure>,
    delay: Option<Duration>,
) -> io::Result<Next> {
    line.begin(wire.stream_type())?;
    let (before, rest) = frames.split_at(failure.map_or(frames.len(), |failure| {
        breaking_point(frames, failure.after.unwrap_or(BEFORE_FAILURE))
    }));
    send(line, before, delay)?;
    match failure.map(|failure| failure.kind) {
        Some(Kind::Drop) => return Ok(Next::HangUp),
        Some(Kind::Stall) => return Err(line.stall()),
        Some(Kind::ErrorEvent) => line.more(&wire.error_event())?,
        Some(Kind::Malformed) => {
            line.more(&wire.broken_event())?;
            send(line, rest, delay)?;
        }
        _ => {}
    }
    // The message is complete: a client that recognises its end need not wait for the end of the
    // response.
    Ok(line.end().map_or(Next::HangUp, |()| Next::Listen))
}

fn send(line: &mut Line, frames: &[Frame], delay: Option<Duration>) -> io::Result<()> {
    for frame in frames {
        if let Some(delay) = delay.filter(|delay| frame.part == Part::Token && !delay.is_zero()) {
            line.pause(delay)?;
        }
        line.more(&frame.text)?;
    }
    Ok(())
}

/// Returns the first frame not sent if a failure comes after this many tokens: at the latest the
/// one that closes the message.
fn breaking_point(frames: &[Frame], tokens: usize) -> usize {
    let mut said = 0;
    for (at, frame) in frames.iter().enumerate() {
        match frame.part {
            Part::Close => return at,
            Part::Token if said == tokens => return at,
            Part::Token => said += 1,
            Part::Frame => {}
        }
    }
    frames.len()
}

/// Sends an answer as one document.
fn whole(
    line: &mut Line,
    wire: &dyn Wire,
    reply: &Reply,
    failure: Option<&Failure>,
    delay: Option<Duration>,
) -> io::Result<Next> {
    if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
        line.pause(delay)?;
    }
    let body = wire.whole(reply).to_string().into_bytes();
    let half = body.len() / 2;
    let torn = Whole {
        missing: body.len() - half,
        ..Whole::json(200, &body[..half])
    };
    match failure.map(|failure| failure.kind) {
        Some(Kind::Drop) => {
            line.respond(&torn)?;
            Ok(Next::HangUp)
        }
        Some(Kind::Stall) => {
            line.respond(&torn)?;
            Err(line.stall())
        }
        Some(Kind::Truncate | Kind::Malformed) => {
            line.respond(&Whole::json(200, &body[..half]))?;
            Ok(Next::Listen)
        }
        Some(Kind::ErrorEvent) => refuse(line, wire, &Refused::new(500, "it broke in the middle")),
        _ => {
            line.respond(&Whole::json(200, &body))?;
            Ok(Next::Listen)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_breaks_after_its_tokens_and_before_it_closes() {
        let frame = |part| Frame {
            part,
            text: String::new(),
        };
        let frames = [
            Part::Frame,
            Part::Token,
            Part::Frame,
            Part::Token,
            Part::Frame,
            Part::Close,
            Part::Close,
        ]
        .map(frame);
        let points = [0, 1, 2, 9].map(|tokens| breaking_point(&frames, tokens));
        assert_eq!(points, [1, 3, 5, 5]);
    }
}
