// Keys of the whole page. Keys that write text are left alone while a field has the focus.

import { isEditable } from './dom.js';
import { showHelp } from './dialogs.js';

/** Handles keys for `app`. */
export function listenToKeys(app) {
  const session = (run) => () => app.view?.transcript && run(app.view);
  const reading = {
    '/': () => { app.showList(); app.list.focusSearch(); },
    j: () => app.list.move(1),
    k: () => app.list.move(-1),
    s: () => app.go('/stats'),
    '?': () => showHelp(),
    '[': session((view) => view.transcript.step(-1)),
    ']': session((view) => view.transcript.step(1)),
    G: session((view) => view.transcript.goToEnd()),
    l: session((view) => view.actions.family()),
  };
  const writing = {
    n: () => app.go('/new'),
    u: () => app.undo(),
    i: session((view) => view.composer.focus()),
    r: session((view) => view.actions.rename()),
    t: session((view) => view.actions.tag()),
    f: session((view) => view.actions.fork()),
    x: session((view) => view.actions.trash()),
  };
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open], [popover]')) return;
    if (app.view?.key?.(event)) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') {
      if (escape(app, event.target)) event.preventDefault();
      return;
    }
    const run = !isEditable(event.target) && (reading[event.key] ?? (app.mayWrite && writing[event.key]));
    if (!run) return;
    event.preventDefault();
    run();
  });
}

/** `Esc`: cancels the answer, else empties the search, else leaves the field, else goes back. */
function escape(app, target) {
  if (target.type === 'search') {
    if (!app.list.clearSearch()) target.blur();
    return true;
  }
  if (app.mayWrite && app.view?.isAnswering) {
    app.view.actions.cancel();
    return true;
  }
  if (isEditable(target)) {
    target.blur();
    return true;
  }
  if (location.pathname === '/') return false;
  app.go('/');
  return true;
}
