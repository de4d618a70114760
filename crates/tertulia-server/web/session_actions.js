// What a user does to a session, besides writing: each action asks where that is needed, and changes
// the session on the server.

import { chooseTags, configure, confirm, menu, promptText, showFamily } from './dialogs.js';
import { complain, copy, toast } from './dom.js';

export class SessionActions {
  #app;
  #id;
  #known;
  #changed;

  /** `known()` returns what is known of the session: `{session, state}`; `changed()` is called after a change. */
  constructor(app, id, { known, changed }) {
    this.#app = app;
    this.#id = id;
    this.#known = known;
    this.#changed = changed;
  }

  /** Sends a request that is not repeated after a loss. */
  request(type, fields = {}) {
    return this.#app.connection.request(type, { session_id: this.#id, ...fields }, { again: false });
  }

  cancel() {
    // There is no reply, except an error.
    this.request('cancel').catch((error) => error.kind !== 'lost' && complain(error));
  }

  /** Asks the agent once more for the answer that failed. */
  askAgain() {
    this.request('say', { text: '' }).catch((error) => complain(error));
  }

  async fork(seq) {
    try {
      const { session_id: fork } = await this.request('session_fork', { seq });
      this.#app.list.refresh();
      this.#app.go(`/s/${fork}`);
      toast(seq ? `Forked at entry ${seq}` : 'Forked');
    } catch (error) {
      complain(error, () => this.fork(seq));
    }
  }

  async rename() {
    const title = await promptText('Rename session', 'Title', this.#known().session?.title ?? '');
    if (title) this.#change('session_rename', { title });
  }

  async tag() {
    const change = await chooseTags(this.#known().session?.tags ?? []);
    if (change) this.#change('session_tag', change);
  }

  async trash() {
    if (this.#known().session?.trashed) return this.#change('session_restore', {});
    if (!(await confirm('Move this session to the trash?', 'Move to trash'))) return;
    try {
      await this.request('session_delete');
      this.#app.list.refresh();
      this.#app.go('/');
      toast('Moved to the trash', { action: { label: 'Undo', run: () => this.#app.undo() } });
    } catch (error) {
      complain(error);
    }
  }

  async configure() {
    const { session, state } = this.#known();
    try {
      await configure({
        connection: this.#app.connection,
        sessionId: this.#id,
        kind: session?.kind ?? 'chat',
        agent: state.floor.agent,
        model: state.floor.model,
        permissions: state.permissions,
      });
    } catch (error) {
      complain(error, () => this.configure());
    }
  }

  family() {
    showFamily(this.#app, this.#id).catch((error) => complain(error, () => this.family()));
  }

  /** Opens the menu of the session at a button. */
  openMenu(button) {
    const ask = (type) => this.request(type).catch((error) => complain(error));
    const write = this.#app.mayWrite;
    menu(button, [
      write && ['Rename…', () => this.rename(), 'r'],
      write && ['Tags…', () => this.tag(), 't'],
      write && ['Fork', () => this.fork(), 'f'],
      ['Family tree', () => this.family(), 'l'],
      write && ['Compact the context', () => ask('compact')],
      ['Copy link', () => copy(new URL(`/s/${this.#id}`, location.href).href, button)],
      write && ['Close the live session', () => ask('stop')],
      write && [this.#known().session?.trashed ? 'Restore from the trash' : 'Move to trash…', () => this.trash(), 'x'],
    ]);
  }

  async #change(type, fields) {
    try {
      await this.request(type, fields);
      this.#app.list.refresh();
      this.#changed();
    } catch (error) {
      complain(error, () => this.#change(type, fields));
    }
  }
}
