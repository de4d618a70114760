//! Finds the first agent that is ready, for users who have chosen none.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use tertulia_agents::api::Provider;
use tertulia_agents::vendor::Vendor;

use super::DEMO;
use crate::env;
use crate::settings::Settings;

/// How long connecting to a local Ollama may take. Without a server the connection is refused at
/// once.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(150);

/// Returns the name of the first agent that is ready, and the reason.
pub fn first_ready(settings: &Settings) -> (String, String) {
    // Skip names that the settings describe: they may be reached in another way.
    let free = |name: &str| !settings.agents.contains_key(name);
    for provider in Provider::ALL {
        let set = |variable: &&&str| env::text(variable).is_some();
        if let Some(variable) = provider.key_variables().iter().find(set)
            && free(provider.name())
        {
            return (provider.name().to_owned(), format!("{variable} is set"));
        }
    }
    let ollama = Provider::Ollama;
    if free(ollama.name())
        && let Some(place) = listening(ollama)
    {
        return (
            ollama.name().to_owned(),
            format!("an Ollama listens at {place}"),
        );
    }
    for vendor in Vendor::ALL {
        let program = vendor.program();
        if free(vendor.name()) && env::program(Path::new(program)).is_some() {
            return (
                vendor.name().to_owned(),
                format!("the program {program} is installed"),
            );
        }
    }
    (
        DEMO.to_owned(),
        "found no API key, Ollama or agent program".to_owned(),
    )
}

/// Returns the address of Ollama if a server listens there.
fn listening(ollama: Provider) -> Option<String> {
    let url = env::text(ollama.url_variable());
    let url = url.as_deref().unwrap_or(ollama.default_base());
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = place.split('/').next()?;
    let place = if place.contains(':') {
        place.to_owned()
    } else {
        format!("{place}:11434")
    };
    let address = place.to_socket_addrs().ok()?.next()?;
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
        .is_ok()
        .then_some(place)
}
