// One session: follows its events and puts transcript, live answer, permission requests and input
// together.

import { announce, complain, copy, element, iconButton, toast } from './dom.js';
import { Composer } from './composer.js';
import { chooseTags, confirm, showFamily, configure, menu, promptText } from './dialogs.js';
import { Permission } from './permission.js';
import { Stream } from './stream.js';
import { Transcript } from './transcript.js';

/** Number of speaker colours in the style sheet. */
const VOICES = 8;

export class SessionView {
  #app;
  #id;
  #session = null;
  #state = {};
  #permissions = { mode: null, always: [] };
  #isAnswering = false;
  #isClosed = false;
  #asked = null;
  #names = new Map();
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
    this.stream = new Stream({
      render: render('render'),
      grow: (change) => this.transcript.grow(change),
      voice,
      onPending: {
        retry: (clientId) => app.outbox.retry(clientId),
        discard: (clientId) => app.outbox.remove(clientId),
      },
    });
    this.transcript = new Transcript({
      fetchPage: async (position) => {
        const page = await app.connection.request('session_page', { session_id: id, ...position });
        this.#session ??= page.session;
        return page;
      },
      live: this.stream.node,
      actions: { fork: (seq) => this.fork(seq), open: (seq) => app.go(`/s/${id}/${seq}`), voice },
    });
    this.permission = new Permission({
      renderPreview: render('render_preview'),
      answer: (toolId, verdict, reason) => this.#answer(toolId, verdict, reason),
    });
    this.composer = new Composer(id, {
      send: (text) => this.send(text),
      cancel: () => this.cancel(),
      configure: () => this.configure(),
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
    try {
      this.#showPage(await this.transcript.open(seq));
    } catch (error) {
      if (!this.#isClosed) this.#problem(error);
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
    return this.#isAnswering;
  }

  send(text) {
    this.stream.clearNotices();
    this.#app.outbox.add(this.#id, text, this.transcript.head);
    this.transcript.goToEnd();
  }

  cancel() {
    // There is no reply, except an error.
    this.#write('cancel', { session_id: this.#id }).catch((error) => error.kind !== 'lost' && complain(error));
  }

  async fork(seq) {
    try {
      const { session_id: fork } = await this.#write('session_fork', { session_id: this.#id, seq });
      this.#app.list.refresh();
      this.#app.go(`/s/${fork}`);
      toast(seq ? `Forked at entry ${seq}` : 'Forked');
    } catch (error) {
      complain(error);
    }
  }

  async rename() {
    const title = await promptText('Rename session', 'Title', this.#session?.title ?? '');
    if (title) this.#change('session_rename', { title });
  }

  async tag() {
    const change = await chooseTags(this.#session?.tags ?? []);
    if (change) this.#change('session_tag', change);
  }

  async trash() {
    if (this.#session?.trashed) return this.#change('session_restore', {});
    if (!(await confirm('Move this session to the trash?', 'Move to trash'))) return;
    try {
      await this.#write('session_delete', { session_id: this.#id });
      this.#app.list.refresh();
      this.#app.go('/');
      toast('Moved to the trash', { action: { label: 'Undo', run: () => this.#app.undo() } });
    } catch (error) {
      complain(error);
    }
  }

  async configure() {
    await configure({
      connection: this.#app.connection,
      sessionId: this.#id,
      kind: this.#session?.kind ?? 'chat',
      agent: this.#state.agent,
      model: this.#state.model,
      permissions: this.#permissions,
    });
  }

  family() {
    showFamily(this.#app, this.#id);
  }

  #header() {
    const open = (event) => menu(event.currentTarget, [
      ['Rename…', () => this.rename(), 'r'],
      ['Tags…', () => this.tag(), 't'],
      ['Fork', () => this.fork(), 'f'],
      ['Family tree', () => this.family(), 'l'],
      ['Compact the context', () => this.#ask('compact')],
      ['Copy link', () => copy(new URL(`/s/${this.#id}`, location.href).href, event.target)],
      ['Close the live session', () => this.#ask('stop')],
      [this.#session?.trashed ? 'Restore from the trash' : 'Move to trash…', () => this.trash(), 'x'],
    ]);
    return element('header', { class: 'bar' },
      iconButton('back', 'Back to the list', () => this.#app.go('/'), { class: 'quiet back' }),
      element('div', { class: 'heading' }, this.#title, this.#facts),
      iconButton('more', 'Session menu', open, { 'aria-haspopup': 'menu' }));
  }

  #ask(type) {
    this.#write(type, { session_id: this.#id }).catch(complain);
  }

  #write(type, fields) {
    return this.#app.connection.request(type, fields, { again: false });
  }

  async #change(type, fields) {
    try {
      await this.#write(type, { session_id: this.#id, ...fields });
      this.#app.list.refresh();
      this.#refreshFrom(this.transcript.last);
    } catch (error) {
      complain(error);
    }
  }

  #answer(toolId, verdict, reason) {
    const sent = this.#write('verdict', { session_id: this.#id, tool_id: toolId, verdict, reason });
    sent.catch(complain);
    return sent;
  }

  #problem(error) {
    // A session without entries is not in the store yet.
    if (error.kind === 'not_found' && this.#app.created.has(this.#id)) return this.#showSession({ kind: 'chat', title: null, tags: [] });
    this.transcript.node.replaceChildren(element('div', { class: 'empty' }, element('h2', {}, 'This session cannot be shown'),
      element('p', {}, error.message), error.hint && element('p', { class: 'dim' }, error.hint)));
  }

  #showPage(page) {
    this.#showSession(page.session);
    for (const { speaker } of page.entries) if (speaker) this.#names.set(speaker.name, speaker.display);
    for (const entry of page.entries) if (entry.role === 'user') this.#app.outbox.settle(this.#id, entry);
    this.stream.arrived(page.more_after ? page.last : page.head);
    this.transcript.hideUnsettled(this.stream.hasCalls);
  }

  #showSession(session) {
    this.#session = session;
    session.trashed = session.status === 'trashed';
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
    const sign = this.permission.isOpen ? '(asks you) ' : this.#isAnswering ? '… ' : '';
    this.#app.showTitle(`${sign}${this.#session?.title || 'New session'}`);
  }

  #showPending() {
    if (!this.#isClosed) this.stream.showPending(this.#app.outbox.of(this.#id), this.#isAnswering);
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
    this.permission.clear();
    this.#setAnswering(false);
    // Before the first page is there, that page has everything.
    if (this.#session) this.#refreshFrom(this.transcript.last);
  }

  #event(event) {
    const handle = HANDLERS[event.what];
    if (handle) this[handle](event);
  }

  onState({ floor }) {
    this.#state = floor;
    this.stream.reset();
    this.permission.clear();
    this.#asked = floor.agent ? { name: floor.agent } : null;
    this.stream.ask(this.#asked);
    this.#setAnswering(false);
    const waiting = floor.waiting.map(({ name, intent }) => `${name} (${intent})`).join(', ');
    this.composer.showQueue(floor.undone ? `Unfinished: ${floor.undone}` : waiting && `Queue: ${waiting}`);
    this.#showSettings();
    if (floor.unsaved) this.stream.notice('warning', 'Some messages could not be saved and are held in memory.');
  }

  onNotOpened({ error }) {
    this.stream.notice('error', error.hint ? `${error.message} (${error.hint})` : error.message);
    this.#setAnswering(false);
  }

  onBegan() {
    this.#setAnswering(true);
  }

  onAsked({ speaker }) {
    this.#asked = speaker;
    this.#names.set(speaker.id, speaker.displayName);
    this.stream.ask(speaker);
    this.#setAnswering(true);
  }

  onText({ text }) {
    this.stream.text(text);
  }

  onThought({ text }) {
    this.stream.thought(text);
  }

  onHeard({ event }) {
    this.stream.agentEvent(event);
    this.transcript.hideUnsettled(this.stream.hasCalls);
  }

  onDurable({ line }) {
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

  onHeld({ message }) {
    this.stream.notice('warning', `Not saved yet, held in memory: ${message.content.slice(0, 200)}`);
  }

  onFailed({ error }) {
    if (error.hint) this.stream.notice('error', `hint: ${error.hint}`);
  }

  onRouted({ output }) {
    const name = (id) => this.#names.get(id) ?? id;
    const [[kind, value]] = Object.entries(output);
    if (kind === 'queue') {
      const pending = value.pending.map(({ request }) => `${name(request.target)} (${request.intent})`);
      this.composer.showQueue(pending.length ? `Queue: ${pending.join(', ')}` : '');
    } else if (kind === 'unresolved') {
      this.stream.notice('warning', `No member is called ${value.names.join(', ')}. Members: ${value.available.join(', ')}`);
    } else if (kind === 'next' && value.paused) {
      this.stream.notice('note', `Paused after ${value.paused.rounds} rounds: the next message is yours.`);
    }
  }

  onPair({ event }) {
    if (typeof event === 'string') return;
    const { round, chose, correcting, worker_failed: failed } = event;
    if (round) {
      const left = round.remaining === 'unlimited' ? '' : `, ${round.remaining.calls} left`;
      this.composer.showQueue(`Round ${round.round} · worker calls: ${round.worker_calls}${left}`);
    }
    if (chose) this.stream.notice('note', `The worker uses ${chose}.`);
    if (correcting) this.stream.notice('note', `The instructor is asked to correct its reply (attempt ${correcting.attempt}).`);
    if (failed) this.stream.notice('warning', `The worker failed: ${failed.message}`);
  }

  onNotice({ tone, text }) {
    this.stream.notice(tone, text);
  }

  onMayI({ request }) {
    this.permission.ask(request);
    this.#setAnswering(true);
  }

  onSettled({ tool_id: toolId }) {
    this.permission.settle(toolId);
    this.#setAnswering(this.#isAnswering);
  }

  onPermissions({ state }) {
    this.#permissions = state;
    this.#showSettings();
  }

  onMoved({ to }) {
    toast('Another program writes to this session: it continues in a fork');
    this.#app.replace(`/s/${to}`);
  }

  onGone({ farewell }) {
    for (const { tone, text } of farewell.told) this.stream.notice(tone, text);
    this.stream.reset();
    this.permission.clear();
    this.#setAnswering(false);
  }

  #setAnswering(isAnswering) {
    const wasAnswering = this.#isAnswering;
    this.#isAnswering = isAnswering;
    const name = this.#asked?.displayName ?? this.#asked?.name ?? 'The agent';
    this.composer.showStatus(!isAnswering ? null : this.permission.isOpen ? 'Waiting for your answer' : `${name} is answering`);
    if (isAnswering) this.#app.list.showPhase(this.#id, this.permission.isOpen ? 'asking' : 'answering');
    else if (wasAnswering) this.#app.list.showPhase(this.#id, 'waiting');
    this.#showPending();
    this.#showTitle();
  }

  #showSettings() {
    const { agent, model, context, writer } = this.#state;
    const known = agent ?? (this.#session?.kind === 'chat' ? this.#session.agents?.at(-1) : this.#session?.team);
    this.composer.showSettings({ agent: known, model, policy: this.#permissions.mode, context, writer });
  }

  /** Fetches what follows entry `seq`. Requests during one are joined to one more. */
  async #refreshFrom(seq) {
    this.#dirty = Math.min(this.#dirty ?? seq, seq);
    if (this.#isRefreshing || this.#isClosed || !this.#session) return;
    this.#isRefreshing = true;
    while (this.#dirty !== null && !this.#isClosed) {
      const from = Math.min(this.#dirty, this.transcript.last);
      this.#dirty = null;
      try {
        const page = await this.transcript.refresh(from);
        this.transcript.grow(() => this.#showPage(page));
      } catch {
        break;
      }
    }
    this.#isRefreshing = false;
  }
}

/** Names of the methods that handle the events. */
const HANDLERS = {
  opened: 'onState', over: 'onState', not_opened: 'onNotOpened', began: 'onBegan', asked: 'onAsked', text: 'onText',
  thought: 'onThought', heard: 'onHeard', durable: 'onDurable', held: 'onHeld', failed: 'onFailed', routed: 'onRouted',
  pair: 'onPair', notice: 'onNotice', may_i: 'onMayI', settled: 'onSettled', permissions: 'onPermissions',
  moved: 'onMoved', gone: 'onGone',
};
