//! Responses. Each has the headers that keep a browser from running, embedding or keeping anything
//! that it should not.

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, LOCATION,
    RETRY_AFTER, SET_COOKIE, VARY,
};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::assets::File;

/// What the page may load and run: its own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'";

/// Adds the headers of every response.
pub fn guarded(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let kept = HeaderValue::from_static("no-store");
    headers.entry(CACHE_CONTROL).or_insert(kept);
    response
}

/// Returns a response without content.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns a text.
pub fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns an error as JSON.
pub fn error(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    json(
        status,
        &json!({ "error": { "kind": kind, "message": message } }),
    )
}

/// Returns JSON.
pub fn json(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns a page that is not kept, compressed if the browser `unpacks` it.
pub fn page(status: StatusCode, file: &File, unpacks: bool) -> Response<Body> {
    let mut response = Response::new(Body::from(match unpacks {
        true => file.packed.clone(),
        false => file.plain.clone(),
    }));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if unpacks {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns a file of the page, or says that the browser has it. One whose address `is_versioned`
/// never changes.
pub fn asset(
    file: &File,
    known: Option<&str>,
    unpacks: bool,
    is_versioned: bool,
) -> Response<Body> {
    let has = known.is_some_and(|known| known.split(',').any(|known| known.trim() == file.tag));
    let mut response = match has {
        true => empty(StatusCode::NOT_MODIFIED),
        false => page(StatusCode::OK, file, unpacks),
    };
    let headers = response.headers_mut();
    let kept = match is_versioned {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Sends a browser elsewhere.
pub fn see_other(path: &str) -> Response<Body> {
    let mut response = empty(StatusCode::SEE_OTHER);
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// Returns the response to a method that is not known here.
pub fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "wrong method");
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns the response to too many logins.
pub fn too_many() -> Response<Body> {
    let mut response = error(
        StatusCode::TOO_MANY_REQUESTS,
        "busy",
        "too many wrong logins at once",
    );
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("3"));
    response
}

/// Ends the connection after a response.
pub fn last(mut response: Response<Body>) -> Response<Body> {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Sets a cookie that scripts cannot read and other sites cannot use.
pub fn with_cookie(
    mut response: Response<Body>,
    name: &str,
    value: &str,
    secure: bool,
) -> Response<Body> {
    let age = match value.is_empty() {
        true => "; Max-Age=0",
        // 90 days, as long as the login lasts.
        false => "; Max-Age=7776000",
    };
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{age}{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
