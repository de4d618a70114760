//! Answers requests: first the name of the host, then what is asked for, then who asks.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST, IF_NONE_MATCH, ORIGIN,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, Request, Response, StatusCode};
use axum::response::IntoResponse;

use super::access::{Action, Proof, Refusal, decide};
use super::assets::File;
use super::authenticator::Presented;
use super::credentials::Holder;
use super::listen::Visit;
use super::login::{self, LARGEST_BODY};
use super::places::State;
use super::route::{Route, route};
use super::{Web, heads, reply, socket};
use crate::protocol::LONGEST_LINE;

/// The secret of a login, from the storage of the page.
const SECRET: HeaderName = HeaderName::from_static("tertulia-secret");
/// Says why a browser sends a request.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Answers a request.
pub async fn handle(web: &Arc<Web>, visit: &Visit, request: Request<Body>) -> Response<Body> {
    let is_open_ended = heads::is_open_ended(request.headers());
    let response = reply::guarded(answer(web, visit, request).await);
    match is_open_ended && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        true => reply::last(response),
        false => response,
    }
}

async fn answer(web: &Arc<Web>, visit: &Visit, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    if let Some(refused) = misdirected(web, &parts) {
        return reply::last(refused);
    }
    if length(&parts).is_some_and(|length| length > LARGEST_BODY) {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return reply::last(reply::text(status, "the request is too large"));
    }
    let path = parts.uri.path().to_owned();
    let (route, method) = (route(&path), parts.method.clone());
    let is_get = method == "GET" || method == "HEAD";
    match route {
        Route::Unknown if is_get => return missing(web, &parts),
        Route::Health if is_get => return reply::text(StatusCode::OK, "ok"),
        Route::Asset(version, name) if is_get => return asset(web, version, name, &parts),
        Route::Login if is_get => return page(&web.files.login, &parts),
        Route::Login if method == "POST" => return login::log_in(web, visit, body).await,
        _ => {}
    }
    let cookie = cookie(&parts, web.site.cookie()).map(str::to_owned);
    let presented = Presented {
        cookie: cookie.as_deref(),
        secret: header(&parts, &SECRET),
        bearer: bearer(&parts),
    };
    let (proof, holder) = web.authenticator.who(presented, web.hub.host().now());
    if proof != Proof::None {
        visit.set(State::Known);
    } else if presented.is_guess()
        && let Some(busy) = login::slow_down(web, visit).await
    {
        return busy;
    }
    let action = match route {
        Route::Logout => Action::LogOut,
        Route::Socket if is_get => Action::Connect,
        _ if is_get => Action::OpenPage,
        _ => Action::Change,
    };
    if let Err(refusal) = decide(proof, action, parts.headers.contains_key(ORIGIN)) {
        return refused(refusal, &parts);
    }
    match route {
        Route::Page if is_get => page(&web.files.index, &parts),
        Route::Logout if method == "POST" => login::log_out(web, cookie).await,
        Route::Socket if method == "GET" => match holder {
            Some(holder) => upgrade(web, &mut parts, holder).await,
            None => refused(Refusal::Unauthorized, &parts),
        },
        Route::Unknown => reply::text(StatusCode::NOT_FOUND, "not found"),
        Route::Login => reply::wrong_method("GET, HEAD, POST"),
        Route::Logout => reply::wrong_method("POST"),
        Route::Socket => reply::wrong_method("GET"),
        _ => reply::wrong_method("GET, HEAD"),
    }
}

fn page(file: &File, parts: &Parts) -> Response<Body> {
    reply::page(StatusCode::OK, file, unpacks(parts))
}

fn asset(web: &Web, version: Option<&str>, name: &str, parts: &Parts) -> Response<Body> {
    match web.files.find(version, name) {
        Some(file) => {
            let known = header(parts, &IF_NONE_MATCH);
            reply::asset(file, known, unpacks(parts), version.is_some())
        }
        None => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Says that there is nothing: with the way back, if a person has followed a link.
fn missing(web: &Web, parts: &Parts) -> Response<Body> {
    match wants_page(parts) {
        true => reply::page(StatusCode::NOT_FOUND, &web.files.missing, unpacks(parts)),
        false => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Returns true if the client can unpack what is compressed.
fn unpacks(parts: &Parts) -> bool {
    let accepted = header(parts, &ACCEPT_ENCODING).unwrap_or_default();
    accepted.split(',').any(|coding| coding.trim() == "gzip")
}

async fn upgrade(web: &Arc<Web>, parts: &mut Parts, holder: Holder) -> Response<Body> {
    let upgrade = match WebSocketUpgrade::from_request_parts(parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let (web, token) = (web.clone(), web.clients.token());
    upgrade
        .max_message_size(LONGEST_LINE)
        .max_frame_size(LONGEST_LINE)
        .on_upgrade(move |stream| async move {
            socket::serve(&web, stream, &holder).await;
            drop(token);
        })
}

fn refused(refusal: Refusal, parts: &Parts) -> Response<Body> {
    let (status, kind, words) = match refusal {
        Refusal::Unauthorized if navigates(parts) => {
            return reply::see_other(&format!("/login?next={}", parts.uri.path()));
        }
        Refusal::Unauthorized => (
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "log in with a code or a token",
        ),
        Refusal::WrongOrigin => (
            StatusCode::FORBIDDEN,
            "forbidden",
            "this request comes from another page",
        ),
        Refusal::ReadOnly => (
            StatusCode::FORBIDDEN,
            "forbidden",
            "this access may only read",
        ),
    };
    reply::error(status, kind, words)
}

/// Returns true if a person opens a page, and no script asks.
fn navigates(parts: &Parts) -> bool {
    route(parts.uri.path()) == Route::Page && wants_page(parts)
}

/// A service worker that opens a page for a person asks as a script does, but still for a page.
fn wants_page(parts: &Parts) -> bool {
    let accepts = header(parts, &ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    accepts || header(parts, &FETCH_MODE) == Some("navigate")
}

/// Refuses a request, whatever it asks for, that names another host than that of the page, or comes
/// from another page. If it says so twice, no two programs need agree on which one counts.
fn misdirected(web: &Web, parts: &Parts) -> Option<Response<Body>> {
    let is_repeated = |name| parts.headers.get_all(name).iter().nth(1).is_some();
    if is_repeated(HOST) || is_repeated(ORIGIN) {
        let words = "a request has one Host and at most one Origin";
        return Some(reply::text(StatusCode::BAD_REQUEST, words));
    }
    let host = header(parts, &HOST);
    let named = parts.uri.authority().map(|authority| authority.as_str());
    if !host.is_some_and(|host| web.site.has_host(host))
        || named.is_some_and(|named| !web.site.has_host(named))
    {
        return Some(reply::text(StatusCode::FORBIDDEN, "wrong host"));
    }
    let origin = parts.headers.get(ORIGIN)?;
    let is_ours = origin
        .to_str()
        .is_ok_and(|origin| web.site.has_origin(origin));
    (!is_ours).then(|| refused(Refusal::WrongOrigin, parts))
}

/// Returns the first header of this name.
fn header<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

fn length(parts: &Parts) -> Option<usize> {
    let length = header(parts, &CONTENT_LENGTH)?;
    Some(length.parse().unwrap_or(usize::MAX))
}

fn cookie<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let cookies = parts.headers.get_all(COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|cookie| cookie.to_str().ok())
        .flat_map(|cookie| cookie.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

fn bearer(parts: &Parts) -> Option<&str> {
    let (scheme, token) = header(parts, &AUTHORIZATION)?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}
