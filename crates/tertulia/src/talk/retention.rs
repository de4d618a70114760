//! Applies the `[retention]` rules at the end of a session. The first time they are only announced,
//! so that a forgotten line in the settings hides no session without warning.

use crate::commands::export;
use crate::commands::prune::{self, Rules};
use crate::open::Workspace;
use crate::show;
use crate::ui::Ui;

/// File in the data folder that holds the rules as they were announced.
const ANNOUNCED: &str = "retention-announced";

/// Announces the rules, or applies them. Failures are shown as warnings and change nothing else.
pub fn keep_workspace(workspace: &Workspace, ui: &mut Ui) {
    if !workspace.settings.retention.is_on() {
        return;
    }
    let plan = match prune::plan(&Rules::from(&workspace.settings.retention), workspace) {
        Ok(plan) if plan.trash.is_empty() && plan.purge.is_empty() => return,
        Ok(plan) => plan,
        Err(error) => return ui.warn(&format!("[retention] cannot be followed: {error}")),
    };
    let (trash, purge) = (plan.trash.len(), plan.purge.len());
    let announced = workspace.settings.data.join(ANNOUNCED);
    let rules = format!("{:?}\n", workspace.settings.retention);
    // Announced once, and again when the rules have changed.
    if !std::fs::read_to_string(&announced).is_ok_and(|told| told == rules) {
        let words = format!(
            "[retention] will move {} to the trash and delete {purge} from it, starting with the next session. \
             `tertulia prune --dry-run` lists them.",
            show::count(trash as u64, "session")
        );
        ui.warn(&ui.invocation.complete(&words));
        if let Err(error) = export::write(&announced, rules.as_bytes(), true) {
            ui.warn(&format!("[retention]: {error}"));
        }
        return;
    }
    match prune::carry_out(workspace, &plan) {
        Ok(()) => ui.advise(&format!(
            "[retention]: {} moved to the trash, {purge} deleted from it. `tertulia undo` brings back what was moved to the trash.",
            show::count(trash as u64, "session")
        )),
        Err(error) => ui.warn(&format!("[retention] cannot be followed: {error}")),
    }
}
