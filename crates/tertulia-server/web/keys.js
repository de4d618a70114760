// Keys of the whole page. Keys that write text are left alone while a field has the focus.

import { isEditable } from './dom.js';
import { showHelp } from './dialogs.js';

/** Handles keys for `app`. */
export function listenToKeys(app) {
  const session = (run) => () => app.view?.transcript && run(app.view);
  const plain = {
    '/': () => { app.showList(); app.list.focusSearch(); },
    j: () => app.list.move(1),
    k: () => app.list.move(-1),
    n: () => app.go('/new'),
    s: () => app.go('/stats'),
    u: () => app.undo(),
    '?': () => showHelp(),
    i: session((view) => view.composer.focus()),
    '[': session((view) => view.transcript.step(-1)),
    ']': session((view) => view.transcript.step(1)),
    G: session((view) => view.transcript.goToEnd()),
    r: session((view) => view.rename()),
    t: session((view) => view.tag()),
    f: session((view) => view.fork()),
    l: session((view) => view.family()),
    x: session((view) => view.trash()),
  };
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open], [popover]')) return;
    if (app.view?.key?.(event)) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') {
      if (escape(app, event.target)) event.preventDefault();
      return;
    }
    const run = !isEditable(event.target) && plain[event.key];
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
  if (app.view?.isAnswering) {
    app.view.cancel();
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
