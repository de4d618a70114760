//! The web page where the program is built without it: there are no options, so that none is served.

use std::sync::Arc;

use tertulia_server::hub::Hub;
use tokio_util::task::TaskTracker;

use crate::error::CommandResult;
use crate::settings::Settings;

/// Nothing.
#[derive(Clone, Debug)]
pub enum WebOptions {}

/// Nothing.
#[derive(Clone, Debug)]
pub enum WebPage {}

/// Serves nothing.
pub fn serve(
    options: &WebOptions,
    _: &Settings,
    _: &Arc<Hub>,
    _: &TaskTracker,
) -> CommandResult<WebPage> {
    match *options {}
}
