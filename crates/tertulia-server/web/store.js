// What this browser keeps: the secret of the login, drafts by session, and messages that are sent but
// not yet known to be saved. All survive a reload. A message has a client id, so that the server says
// it once however often it is sent.

const SECRET = 'tertulia.secret';
const DRAFT = 'tertulia.draft.';
const OUTBOX = 'tertulia.outbox';

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    // Storage is full or forbidden: the text then lives as long as the page.
  }
}

/** Returns the secret of the login. Browsers show it to no other server, unlike the cookie. */
export function secret() {
  return read(SECRET) ?? '';
}

/** Keeps the secret of a login. Returns false if the browser does not allow that. */
export function keepSecret(value) {
  write(SECRET, value);
  return read(SECRET) === value;
}

export function draft(sessionId) {
  return read(DRAFT + sessionId) ?? '';
}

export function keepDraft(sessionId, text) {
  write(DRAFT + sessionId, text);
}

/**
 * Messages that are written here, until they are in the log. Each is `unsent` until the server has accepted
 * it; from then on only the server says what becomes of it: it is said, or withdrawn and a `draft`, which
 * nothing but the user sends again. One that the server will not take is `refused`.
 */
export class Outbox extends EventTarget {
  #connection;
  #items;
  #underway = new Set();

  constructor(connection) {
    super();
    this.#connection = connection;
    this.#items = stored();
    connection.addEventListener('state', () => connection.state === 'open' && this.#sendAll());
  }

  /** Returns the messages of a session, oldest first. */
  of(sessionId) {
    return this.#items.filter((item) => item.session === sessionId);
  }

  /** Sends a message to a session whose last entry is `head`. */
  add(session, text, head) {
    const item = { client_id: newId(), session, text, head, state: 'unsent' };
    this.#items.push(item);
    this.#changed();
    this.#sendItem(item);
  }

  /** Takes a message off, because it is in the log or given up. */
  remove(clientId) {
    const left = this.#items.filter((item) => item.client_id !== clientId);
    if (left.length === this.#items.length) return;
    this.#items = left;
    this.#changed();
  }

  /** Takes off the message that this entry of the log holds. */
  settle(sessionId, { client_id: clientId, text, seq }) {
    const fits = (item) => (clientId ? item.client_id === clientId : item.text.trim() === text?.trim() && seq > item.head);
    const item = this.of(sessionId).find(fits);
    if (item) this.remove(item.client_id);
  }

  /** Sends a message again that the server has refused. */
  retry(clientId) {
    const item = this.#items.find((one) => one.client_id === clientId);
    if (item) this.#sendItem(item);
  }

  /** Notes that a message is not sent, unless the user has removed it. */
  withdraw(clientId, reason) {
    const item = this.#items.find((one) => one.client_id === clientId);
    if (!item) return;
    if (reason === 'removed') return this.remove(clientId);
    Object.assign(item, { state: 'draft', reason });
    this.#changed();
  }

  #sendAll() {
    for (const item of this.#items) if (item.state === 'unsent' || item.state === 'accepted') this.#sendItem(item);
  }

  async #sendItem(item) {
    if (this.#underway.has(item.client_id)) return;
    this.#underway.add(item.client_id);
    try {
      const { session: session_id, text, client_id } = item;
      // What was accepted is not sent twice: the server tells what became of it.
      const again = item.state === 'accepted' || undefined;
      const reply = await this.#connection.request('say', { session_id, text, client_id, again }, { again: false });
      if (reply.type === 'withdrawn') Object.assign(item, { state: 'draft', reason: reply.reason });
      // It may have been withdrawn before this reply.
      else if (item.state !== 'draft') item.state = 'accepted';
      if (reply.duplicate) this.dispatchEvent(new CustomEvent('duplicate', { detail: item }));
    } catch (error) {
      if (error.kind === 'lost') return;
      item.state = 'refused';
      item.problem = error.hint ? `${error.message} (${error.hint})` : error.message;
    } finally {
      this.#underway.delete(item.client_id);
      this.#changed();
    }
  }

  #changed() {
    write(OUTBOX, this.#items.length ? JSON.stringify(this.#items) : '');
    this.dispatchEvent(new Event('change'));
  }
}

/** Returns a random id. `crypto.randomUUID` is missing on pages without TLS. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function stored() {
  try {
    return JSON.parse(read(OUTBOX)) ?? [];
  } catch {
    return [];
  }
}
