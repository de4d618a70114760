// The connection to the server: requests with replies, and sessions that are followed. It survives
// sleep, loss and new servers. Every subscription names the last event that it has seen, so that
// nothing is missed or shown twice.

import { secret } from './store.js';

/** Longest pause between two attempts to connect, in milliseconds. */
const LONGEST_PAUSE = 5000;
/** Time for a connection to be made, in milliseconds. */
const CONNECT_TIME = 5000;
/** Time in which a living connection answers after sleep, in milliseconds. It doubles while none does. */
const VERIFY_TIME = 2000;
/** Longest such time, in milliseconds. */
const LONGEST_VERIFY_TIME = 16_000;

/** An `error` reply, or the loss of the connection (`kind` is `lost`). */
class RequestError extends Error {
  constructor({ kind, message, hint }) {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

const LOST = { kind: 'lost', message: 'Connection lost before the server answered. Try again.' };

/** Dispatches `state` when the connection is made or lost; `state` is `connecting`, `open` or `lost`. */
export class Connection extends EventTarget {
  state = 'connecting';
  #address;
  #socket = null;
  #nextId = 1;
  #replies = new Map();
  #subscriptions = new Map();
  #attempt = 0;
  #patience = VERIFY_TIME;
  #verifying = null;
  #timer;
  #began = 0;

  constructor(address) {
    super();
    this.#address = address;
  }

  /** Connects, and from then on connects again whenever the page or the network wakes up. */
  start() {
    this.#connect();
    const wake = () => document.visibilityState === 'visible' && this.verify();
    document.addEventListener('visibilitychange', wake);
    document.addEventListener('resume', wake);
    for (const name of ['pageshow', 'online', 'offline', 'focus']) window.addEventListener(name, wake);
  }

  /**
   * Makes sure that the connection lives, and makes a new one if not. What the browser says of it is
   * not trusted. Several calls ask the server once. Resolves with the reply to `ps`, or `null`.
   */
  async verify(time = this.#patience) {
    if (this.state !== 'open') {
      // An attempt gets half the time that an answer gets.
      if (Date.now() - this.#began < this.#patience / 2) return null;
      this.#attempt = 0;
      this.#tire();
      this.#connect();
      return null;
    }
    const socket = this.#socket;
    const timer = setTimeout(() => {
      if (socket !== this.#socket) return;
      this.#tire();
      this.#connect();
    }, time);
    this.#verifying ??= this.request('ps', {}, { again: false }).catch(() => null).finally(() => { this.#verifying = null; });
    const reply = await this.#verifying;
    clearTimeout(timer);
    if (reply) this.#patience = VERIFY_TIME;
    return reply;
  }

  /** A server that is only slow does not get faster by more connections. */
  #tire() {
    this.#patience = Math.min(LONGEST_VERIFY_TIME, 2 * this.#patience);
  }

  /**
   * Sends a request. Resolves with its reply, rejects with a `RequestError`. A request that only
   * reads is sent again after a loss; with `again: false` it fails instead. Once `signal` is
   * aborted, nobody waits for the reply.
   */
  request(type, fields = {}, { again = true, signal } = {}) {
    return new Promise((resolve, reject) => {
      if (this.state !== 'open' && !again) return reject(new RequestError(LOST));
      const id = this.#nextId++;
      const line = JSON.stringify({ type, id, ...fields });
      this.#replies.set(id, { line, again, resolve, reject });
      signal?.addEventListener('abort', () => this.#replies.delete(id));
      if (this.state === 'open') this.#socket.send(line);
    });
  }

  /**
   * Follows a session. `listener` has `subscribed(isFresh)`, `event(event)` and
   * `failed(error)`. Returns a function that ends it.
   */
  subscribe(sessionId, listener) {
    const subscription = { sessionId, listener, since: undefined, id: 0 };
    this.#follow(subscription);
    return () => {
      this.#subscriptions.delete(subscription.id);
      if (this.state === 'open') this.#send({ type: 'detach', session_id: sessionId });
    };
  }

  /** Sends a request whose reply does not matter. */
  #send(request) {
    this.#socket.send(JSON.stringify(request));
  }

  #follow(subscription) {
    this.#subscriptions.delete(subscription.id);
    subscription.id = this.#nextId++;
    this.#subscriptions.set(subscription.id, subscription);
    if (this.state !== 'open') return;
    const { id, sessionId, since } = subscription;
    this.#send({ type: 'subscribe', id, session_id: sessionId, detail: 'full', since, open: false });
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#drop();
    this.#began = Date.now();
    if (this.state === 'open') this.#enter('lost');
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: 'authenticate', secret: secret() }));
    socket.onclose = () => socket === this.#socket && this.#lost();
    socket.onmessage = ({ data }) => socket === this.#socket && this.#receive(JSON.parse(data));
    this.#timer = setTimeout(() => this.#lost(), CONNECT_TIME);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #opened() {
    clearTimeout(this.#timer);
    this.#attempt = 0;
    this.state = 'open';
    for (const subscription of [...this.#subscriptions.values()]) this.#follow(subscription);
    for (const { line } of this.#replies.values()) this.#socket.send(line);
    this.dispatchEvent(new Event('state'));
  }

  #lost() {
    clearTimeout(this.#timer);
    const wasOpen = this.state === 'open';
    this.#drop();
    this.#enter('lost');
    const pause = Math.min(LONGEST_PAUSE, 250 * 2 ** this.#attempt) * (0.5 + Math.random() / 2);
    this.#attempt += 1;
    this.#timer = setTimeout(() => this.#connect(), pause);
    if (!wasOpen) checkLogin();
  }

  #enter(state) {
    this.state = state;
    for (const [id, reply] of [...this.#replies]) {
      if (reply.again) continue;
      this.#replies.delete(id);
      reply.reject(new RequestError(LOST));
    }
    this.dispatchEvent(new Event('state'));
  }

  #receive(message) {
    if (message.type === 'authenticated') return this.#opened();
    if (message.type === 'error' && message.kind === 'unauthorized') return signInAgain();
    const subscription = this.#subscriptions.get(message.id);
    if (subscription) return receiveEvent(subscription, message);
    const reply = this.#replies.get(message.id);
    if (!reply) return;
    this.#replies.delete(message.id);
    if (message.type === 'error') reply.reject(new RequestError(message));
    else reply.resolve(message);
  }
}

function receiveEvent(subscription, message) {
  const { listener } = subscription;
  if (message.type === 'subscribed') {
    if (message.fresh) subscription.since = message.n;
    listener.subscribed(message.fresh);
  } else if (message.type === 'happening') {
    if (!message.replayed && message.n <= subscription.since) return;
    subscription.since = Math.max(subscription.since ?? 0, message.n);
    listener.event(message.happening);
  } else if (message.type === 'error') {
    listener.failed(new RequestError(message));
  }
}

/** A refused upgrade looks like a loss. Asks whether the login has ended. */
async function checkLogin() {
  const response = await fetch('/', { cache: 'no-store', redirect: 'manual', headers: { Accept: 'application/json' } }).catch(() => null);
  if (response?.status === 401) signInAgain();
}

/** Leads to the login, and back to this page. A one-time code in the address is used there. */
export function signInAgain() {
  const code = location.hash.startsWith('#code=') ? location.hash : '';
  location.assign(`/login?again&next=${encodeURIComponent(location.pathname)}${code}`);
}
