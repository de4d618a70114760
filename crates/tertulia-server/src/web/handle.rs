//! Answers requests: first the name of the host, then what is asked for, then who asks.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST, IF_NONE_MATCH, ORIGIN,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, Request, Response, StatusCode};
use axum::response::IntoResponse;

use super::access::{Asked, Proof, Refusal, decide};
use super::authenticator::Presented;
use super::login::{self, LARGEST_BODY};
use super::route::{Route, route};
use super::{Web, assets, reply, socket};
use crate::client::Access;
use crate::protocol::LONGEST_LINE;

/// Says why a browser sends a request.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Answers a request.
pub async fn handle(web: Arc<Web>, request: Request<Body>) -> Response<Body> {
    reply::guarded(answer(&web, request).await)
}

async fn answer(web: &Arc<Web>, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    if !has_host(web, &parts) {
        return reply::last(reply::text(StatusCode::FORBIDDEN, "wrong host"));
    }
    if length(&parts).is_some_and(|length| length > LARGEST_BODY) {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return reply::last(reply::text(status, "the request is too large"));
    }
    let path = parts.uri.path().to_owned();
    let (route, method) = (route(&path), parts.method.clone());
    let is_get = method == "GET" || method == "HEAD";
    match route {
        Route::Unknown if is_get => return reply::text(StatusCode::NOT_FOUND, "not found"),
        Route::Health if is_get => return reply::text(StatusCode::OK, "ok"),
        Route::Asset(name) if is_get => return asset(name, &parts),
        Route::Login if is_get => return reply::page(assets::LOGIN),
        Route::Login if method == "POST" => {
            let origin = header(&parts, &ORIGIN);
            return match origin.is_some_and(|origin| !web.site.has_origin(origin)) {
                true => refused(Refusal::WrongOrigin, &parts),
                false => login::log_in(web, body).await,
            };
        }
        _ => {}
    }
    let cookie = cookie(&parts, web.site.cookie()).map(str::to_owned);
    let presented = Presented {
        cookie: cookie.as_deref(),
        bearer: bearer(&parts),
    };
    let (proof, holder) = web.authenticator.who(presented, web.hub.host().now());
    if proof == Proof::None
        && presented.is_guess()
        && let Some(busy) = login::slow_down(web).await
    {
        return busy;
    }
    let asked = Asked {
        // Everybody may leave.
        changes: !is_get && route != Route::Logout,
        upgrades: matches!(route, Route::Socket | Route::Logout),
        origin: header(&parts, &ORIGIN),
    };
    let access = match decide(&web.site, proof, asked) {
        Ok(access) => access,
        Err(refusal) => return refused(refusal, &parts),
    };
    match route {
        Route::Page if is_get => reply::page(assets::INDEX),
        Route::Logout if method == "POST" => login::log_out(web, cookie).await,
        Route::Socket if method == "GET" => match holder {
            Some(holder) => upgrade(web, &mut parts, access, holder).await,
            None => refused(Refusal::Unauthorized, &parts),
        },
        Route::Unknown => reply::text(StatusCode::NOT_FOUND, "not found"),
        Route::Login => reply::wrong_method("GET, HEAD, POST"),
        Route::Logout => reply::wrong_method("POST"),
        Route::Socket => reply::wrong_method("GET"),
        _ => reply::wrong_method("GET, HEAD"),
    }
}

fn asset(name: &str, parts: &Parts) -> Response<Body> {
    match assets::find(name) {
        Some(asset) => reply::asset(asset, header(parts, &IF_NONE_MATCH)),
        None => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}

async fn upgrade(
    web: &Arc<Web>,
    parts: &mut Parts,
    access: Access,
    holder: super::credentials::Holder,
) -> Response<Body> {
    let upgrade = match WebSocketUpgrade::from_request_parts(parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let (web, token) = (web.clone(), web.clients.token());
    upgrade
        .max_message_size(LONGEST_LINE)
        .max_frame_size(LONGEST_LINE)
        .on_upgrade(move |stream| async move {
            socket::serve(&web, stream, access, &holder).await;
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
    let is_page = route(parts.uri.path()) == Route::Page;
    let mode = header(parts, &FETCH_MODE);
    let accepts = header(parts, &ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    is_page && (mode == Some("navigate") || mode.is_none() && accepts)
}

/// Returns true if a request names a host of the page, once.
fn has_host(web: &Web, parts: &Parts) -> bool {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let named = parts.uri.authority().map(|authority| authority.as_str());
    host.is_some_and(|host| web.site.has_host(host))
        && hosts.next().is_none()
        && named.is_none_or(|named| web.site.has_host(named))
}

/// Returns a header that occurs once.
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
