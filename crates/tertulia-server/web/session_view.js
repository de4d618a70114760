// One session: follows its events and puts transcript, live answer, permission requests and input
// together. What the events mean is in `session_state.js`.

import { announce, complain, element, failed, iconButton, readOnly, toast } from './dom.js';
import { Composer } from './composer.js';
import { Permission } from './permission.js';
import { SessionActions } from './session_actions.js';
import { answeredElsewhere, named, next, pending, phase, remarks, renewed, status, UNKNOWN } from './session_state.js';
import { Stream } from './stream.js';
import { Transcript } from './transcript.js';

/** Number of speaker colours in the style sheet. */
const VOICES = 8;
/** First and longest pause before entries are asked for again, in milliseconds. */
const AGAIN = [1000, 30_000];

export class SessionView {
  #app;
  #id;
  #session = null;
  #state = UNKNOWN;
  #isClosed = false;
  #voices = new Map();
  #unfollow;
  #dirty = null;
  #isRefreshing = false;
  #title = element('h1', {}, '');
  #facts = element('p', { class: 'facts' });

  /** `app` has `connection`, `outbox`, `go(path)`, `list` and `showTitle(words)`. */
  constructor(app, id) {
    this.#app = app;
    this.#id = id;
    const render = (type) => (text) => app.connection.request(type, { text }).then((reply) => reply.html);
    const voice = (name) => this.#voice(name);
    this.actions = new SessionActions(app, id, {
      known: () => ({ session: this.#session, state: this.#state }),
      changed: () => this.#refreshFrom(this.transcript.last),
    });
    this.stream = new Stream({
      render: render('render'),
      grow: (change) => this.transcript.grow(change),
      voice,
      onPending: {
        retry: (clientId) => app.outbox.retry(clientId),
        discard: (item) => this.#takeBack(item),
        edit: (item) => this.#takeBack(item, true),
      },
    });
    this.transcript = new Transcript({
      fetchPage: async (position) => {
        const page = await app.connection.request('session_page', { session_id: id, ...position });
        this.#session ??= page.session;
        return page;
      },
      live: this.stream.node,
      actions: { fork: (seq) => this.actions.fork(seq), open: (seq) => app.go(`/s/${id}/${seq}`), voice },
    });
    this.permission = new Permission({
      renderPreview: render('render_preview'),
      answer: (toolId, verdict, reason) => this.#answer(toolId, verdict, reason),
      mayAnswer: () => app.mayWrite,
    });
    this.composer = new Composer(id, {
      send: (text) => this.send(text),
      cancel: () => this.actions.cancel(),
      configure: () => this.actions.configure(),
    });
    this.node = element('div', { class: 'session' }, this.#header(), this.transcript.node, this.permission.node, this.composer.node);
    this.onOutbox = () => this.#showPending();
    app.outbox.addEventListener('change', this.onOutbox);
  }

  get id() {
    return this.#id;
  }

  /** Loads the transcript and follows the session. */
  async open(seq) {
    this.#unfollow = this.#app.connection.subscribe(this.#id, {
      subscribed: (isFresh) => this.#subscribed(isFresh),
      event: (event) => this.#event(event),
      failed: (error) => error.kind !== 'not_found' && complain(error),
    });
    this.#showPending();
    if (!matchMedia('(pointer: coarse)').matches && !seq) this.composer.focus();
    await this.#load(seq);
  }

  async #load(seq) {
    try {
      this.#showPage(await this.transcript.open(seq));
    } catch (error) {
      if (!this.#isClosed) this.#problem(error, seq);
    }
    if (this.#dirty !== null) this.#refreshFrom(this.#dirty);
  }

  close() {
    this.#isClosed = true;
    this.#unfollow();
    this.composer.close();
    this.#app.outbox.removeEventListener('change', this.onOutbox);
  }

  /** Handles a key that belongs to the session. Returns true if it did something. */
  key(event) {
    return this.permission.key(event);
  }

  get isAnswering() {
    return this.#state.isAnswering;
  }

  send(text) {
    this.stream.clearNotices();
    this.#app.outbox.add(this.#id, text, this.transcript.head);
    this.transcript.goToEnd();
  }

  #header() {
    return element('header', { class: 'bar' },
      iconButton('back', 'Back to the list', () => this.#app.go('/'), { class: 'quiet back' }),
      element('div', { class: 'heading' }, this.#title, this.#facts), readOnly(),
      iconButton('more', 'Session menu', (event) => this.actions.openMenu(event.currentTarget), { 'aria-haspopup': 'menu' }));
  }

  async #answer(toolId, verdict, reason) {
    try {
      await this.actions.request('verdict', { tool_id: toolId, verdict, reason });
    } catch (error) {
      const isLate = error.kind === 'not_found';
      if (isLate) toast(answeredElsewhere(this.#state, toolId));
      else complain(error);
      throw error;
    }
  }

  #problem(error, seq) {
    // A session without entries is not in the store yet.
    const isNew = error.kind === 'not_found' && this.#app.created.has(this.#id);
    this.transcript.showInstead(...(isNew ? [] : [failed(error, () => this.#load(seq))]));
    if (isNew) this.#showSession({ kind: 'chat', title: null, tags: [] });
  }

  #showPage(page) {
    this.#showSession(page.session);
    this.#state = named(this.#state, page.entries);
    for (const entry of page.entries) if (entry.role === 'user') this.#app.outbox.settle(this.#id, entry);
    this.stream.arrived(page.more_after ? page.last : page.head);
    this.transcript.hideUnsettled(this.stream.hasCalls);
  }

  #showSession(session) {
    this.#session = session;
    session.trashed = session.status === 'trashed';
    this.#app.list.put(session);
    const title = session.title || 'New session';
    this.#title.textContent = title;
    this.#title.title = title;
    const names = session.team ?? session.agents?.join(', ');
    this.#facts.replaceChildren(
      [session.kind, names, session.project, session.trashed && 'in the trash', session.sealed && 'sealed'].filter(Boolean).join(' · '),
      ...(session.tags ?? []).map((tag) => element('span', { class: 'tag' }, tag)));
    this.#showSettings();
    this.#showTitle();
  }

  #showTitle() {
    const sign = { asking: '(asks you) ', answering: '… ', waiting: '' }[phase(this.#state)];
    this.#app.showTitle(`${sign}${this.#session?.title || 'New session'}`);
  }

  #showPending() {
    if (this.#isClosed) return;
    this.stream.showPending(pending(this.#state, this.#app.outbox.of(this.#id)), this.#state.isAnswering);
  }

  /** Returns the class with the colour of a speaker: one for chats, else in the order of appearance. */
  #voice(name) {
    if ((this.#session?.kind ?? 'chat') === 'chat') return 'voice-0';
    if (!this.#voices.size) for (const agent of this.#session.agents) this.#voices.set(agent, this.#voices.size);
    if (!this.#voices.has(name)) this.#voices.set(name, this.#voices.size);
    return `voice-${this.#voices.get(name) % VOICES}`;
  }

  #subscribed(isFresh) {
    if (!isFresh) return;
    this.stream.reset();
    // The server tells what waits and what is a draft, if there is any.
    this.#enter({ ...renewed(this.#state), unsent: [] });
    this.#askBeginning();
    // Before the first page is there, that page has everything.
    if (this.#session) this.#refreshFrom(this.transcript.last);
  }

  /** Asks since when an agent has been answering: a page that is opened in the middle does not know. */
  async #askBeginning() {
    const { talks = [] } = await this.#app.connection.request('ps', {}, { again: false }).catch(() => ({}));
    const live = talks.find(({ session_id: id }) => id === this.#id);
    if (live && live.state !== 'waiting') this.composer.beganAt(Date.parse(live.since));
  }

  #event(event) {
    if (RESETS.has(event.what)) this.stream.reset();
    for (const { tone, text } of remarks(event)) this.stream.notice(tone, text);
    this.#enter(next(this.#state, event));
    if (event.what === 'text') this.stream.text(event.text);
    else if (event.what === 'thought') this.stream.thought(event.text);
    else if (event.what === 'heard') this.#heard(event);
    else if (event.what === 'durable') this.#durable(event);
    else if (event.what === 'moved') this.#moved(event);
    else if (event.what === 'withdrawn') this.#withdrawn(event);
  }

  /** Shows what differs in another state. */
  #enter(state) {
    const old = this.#state;
    if (state === old) return;
    this.#state = state;
    if (state.asked !== old.asked) this.stream.ask(state.asked);
    if (state.requests !== old.requests) this.permission.show(state.requests);
    if (state.queue !== old.queue) this.composer.showQueue(state.queue);
    if (state.floor !== old.floor || state.permissions !== old.permissions) this.#showSettings();
    this.composer.showStatus(status(state));
    // A team is asked by a message only.
    const mayRetry = state.hasFailed && !state.isAnswering && this.#session?.kind !== 'team';
    this.stream.showRetry(mayRetry ? () => this.actions.askAgain() : null);
    if (state.isAnswering || old.isAnswering) this.#app.list.showPhase(this.#id, phase(state));
    this.#showPending();
    this.#showTitle();
  }

  #heard({ event }) {
    this.stream.agentEvent(event);
    this.transcript.hideUnsettled(this.stream.hasCalls);
  }

  #durable({ line }) {
    const entry = JSON.parse(line);
    if (entry.type === 'message') {
      const { role, content: text, seq, client_id: clientId } = entry;
      if (role === 'user') this.#app.outbox.settle(this.#id, { text, seq, client_id: clientId });
      if (role === 'tool') this.stream.leaveTool(entry.tool_call_id, seq);
      if (role === 'assistant') {
        this.stream.leave(seq);
        announce(`${entry.speaker.displayName}: ${text.replace(/\[[A-Z_]+:[^\]]*\]/g, '').slice(0, 300)}`);
      }
    }
    this.#refreshFrom(entry.seq - 1);
  }

  #withdrawn({ client_id: clientId, reason }) {
    const isOwn = this.#app.outbox.of(this.#id).some((item) => item.client_id === clientId);
    this.#app.outbox.withdraw(clientId, reason);
    if (isOwn && reason !== 'removed') toast('Not sent. Your message is a draft below.');
  }

  /** Removes a message that was not sent, and lets the user edit it. */
  async #takeBack({ client_id: clientId, text, isTold }, edits = false) {
    try {
      if (isTold) await this.actions.request('withdraw', { client_id: clientId });
    } catch (error) {
      complain(error);
      return;
    }
    this.#app.outbox.remove(clientId);
    if (edits) this.composer.add(text);
  }

  #moved({ to }) {
    toast('Another program writes to this session: it continues in a fork');
    this.#app.replace(`/s/${to}`);
  }

  #showSettings() {
    const { agent, model, context, writer } = this.#state.floor;
    const known = agent ?? (this.#session?.kind === 'chat' ? this.#session.agents?.at(-1) : this.#session?.team);
    this.composer.showSettings({ agent: known, model, policy: this.#state.permissions.mode, context, writer });
  }

  /**
   * Fetches what follows entry `seq`. Requests during one are joined to one more. If the server
   * cannot answer, it is asked again, and the user knows that something is missing.
   */
  async #refreshFrom(seq) {
    this.#dirty = Math.min(this.#dirty ?? seq, seq);
    if (this.#isRefreshing || this.#isClosed || !this.#session) return;
    this.#isRefreshing = true;
    let [pause, longest] = AGAIN;
    while (this.#dirty !== null && !this.#isClosed) {
      const from = Math.min(this.#dirty, this.transcript.last);
      this.#dirty = null;
      try {
        const page = await this.transcript.refresh(from);
        [pause] = AGAIN;
        this.stream.showStale(null);
        this.transcript.grow(() => this.#showPage(page));
      } catch (error) {
        this.#dirty = Math.min(this.#dirty ?? from, from);
        this.stream.showStale(`Something new could not be loaded: ${error.message}. Trying again…`);
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(longest, 2 * pause);
      }
    }
    this.#isRefreshing = false;
  }
}

/** Events after which the answer in progress is forgotten. */
const RESETS = new Set(['opened', 'over', 'gone']);
