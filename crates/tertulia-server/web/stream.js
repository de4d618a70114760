// The live part of a session, below the transcript: the answer that is being written, its reasoning
// and tool calls, notices, and messages that are not in the log yet. Text appears at once as text,
// and the server renders it several times a second.

import { decorate } from './decorate.js';
import { element, fill } from './dom.js';

/** Pause between two renderings of the same answer, in milliseconds. */
const RENDER_PAUSE = 120;
/** Length from which finished paragraphs are no longer rendered again, in characters. */
const LONG = 4000;
/** Notices that stay. */
const MOST_NOTICES = 4;

/** An answer that is being written. */
class Answer {
  #render;
  #grow;
  #fresh = '';
  #finishing = false;
  /** Number of characters that are set aside. */
  #aside = 0;
  #isRendering = false;
  #done = element('div');
  #rendered = element('div');
  #tail = element('span', { class: 'tail' });
  #thought = null;
  #tools = element('div');
  #calls = new Map();
  #text;
  #header;

  constructor({ name, voice, render, grow }) {
    this.#render = render;
    this.#grow = grow;
    this.#text = element('div', { class: 'text', hidden: true }, this.#done, this.#rendered, this.#tail);
    this.#header = element('header', { hidden: true }, element('strong', {}, name));
    this.node = element('article', { class: `entry agent live ${voice}` }, this.#header, this.#text, this.#tools);
  }

  get isEmpty() {
    return this.#header.hidden && !this.#calls.size;
  }

  get hasCalls() {
    return this.#calls.size > 0;
  }

  append(text) {
    this.#header.hidden = false;
    this.#text.hidden = false;
    this.#fresh += text;
    this.#tail.append(text);
    this.#plan();
  }

  think(text) {
    if (!this.#thought) {
      this.#header.hidden = false;
      this.#thought = element('div', { class: 'text plain' });
      this.#text.before(element('details', { class: 'thought' }, element('summary', {}, 'Reasoning'), this.#thought));
    }
    this.#thought.append(text);
  }

  startTool({ id, name, arguments: given }) {
    const summary = summarise(given);
    const card = element('details', { class: 'tool running' },
      element('summary', {}, element('span', { class: 'sign' }, '…'), ' ', element('b', {}, name), ' ', element('code', {}, summary)),
      element('pre', {}, element('code', {}, JSON.stringify(given, null, 2))),
      element('pre', { class: 'output', hidden: true }));
    this.#calls.get(id)?.remove();
    this.#calls.set(id, card);
    this.#tools.append(card);
  }

  /** Shows the output of a tool: its last lines while it runs, all of it at the end. */
  toolOutput(id, text, ok) {
    const card = this.#calls.get(id);
    if (!card) return;
    const output = card.querySelector('.output');
    output.hidden = !text;
    output.textContent = text;
    if (ok === undefined) return;
    card.classList.replace('running', ok ? 'ok' : 'failed');
    card.querySelector('.sign').textContent = ok ? '✓' : '✗';
  }

  /** Takes over the cards of calls that still wait for their results. */
  adopt(other) {
    for (const [id, card] of other.#calls) {
      this.#calls.set(id, card);
      this.#tools.append(card);
    }
    other.#calls.clear();
  }

  /** Removes the card of a call whose result the transcript shows. */
  dropTool(id) {
    this.#calls.get(id)?.remove();
    this.#calls.delete(id);
  }

  #plan(pause = RENDER_PAUSE) {
    if (this.#isRendering) return;
    this.#isRendering = true;
    setTimeout(() => this.#renderNow(), pause);
  }

  async #renderNow() {
    const text = this.#fresh;
    const aside = this.#aside;
    const begun = performance.now();
    const html = await this.#render(text).catch(() => null);
    this.#isRendering = false;
    if (html === null || !this.node.isConnected) return;
    if (aside !== this.#aside) return this.#plan(0);
    this.#grow(() => {
      fill(this.#rendered, html);
      decorate(this.#rendered);
      // What follows continues the last line.
      const blocks = this.#rendered.querySelectorAll('p, li, pre code, td, h3, h4, h5, h6');
      (text.endsWith('\n') ? this.#text : blocks[blocks.length - 1] ?? this.#text).append(this.#tail);
      this.#tail.textContent = this.#fresh.slice(text.length);
      if (text.length > LONG) this.#finish(text);
    });
    if (this.#fresh.length > text.length) this.#plan(Math.max(RENDER_PAUSE, 3 * (performance.now() - begun)));
  }

  /** Sets finished paragraphs aside, so that a long answer does not cost more with every word. */
  async #finish(text) {
    const cut = lastBreak(text);
    if (!cut || this.#finishing) return;
    this.#finishing = true;
    const html = await this.#render(text.slice(0, cut)).catch(() => null);
    this.#finishing = false;
    if (html === null) return;
    const section = element('div');
    fill(section, html);
    decorate(section);
    this.#done.append(section);
    this.#fresh = this.#fresh.slice(cut);
    this.#aside += cut;
    this.#text.append(this.#tail);
    this.#rendered.replaceChildren();
    this.#tail.textContent = this.#fresh;
    this.#plan(0);
  }
}

/** Returns the end of the last paragraph that is complete and not within a code block. */
function lastBreak(text) {
  let cut = 0;
  let at = 0;
  let isCode = false;
  for (const line of text.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    else if (!line.trim() && !isCode && /^\S/.test(text.slice(at + line.length + 1))) cut = at + line.length + 1;
    at += line.length + 1;
  }
  return cut;
}

/** Returns the argument of a tool call that tells most. */
function summarise(given) {
  if (typeof given !== 'object' || given === null) return String(given ?? '');
  const names = ['command', 'cmd', 'file_path', 'path', 'pattern', 'query', 'url', 'description', 'prompt', 'name'];
  const telling = names.map((name) => given[name]).find((value) => typeof value === 'string');
  const text = telling ?? Object.values(given).find((value) => typeof value === 'string') ?? '';
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 90 ? `${line.slice(0, 90)}…` : line;
}

/** Why a message was not sent. */
const REASONS = {
  cancelled: 'cancelled',
  stopped: 'the session was stopped',
  holder_ended: 'the session was closed',
  restarted: 'the server was restarted',
  refused: 'refused',
};

/** The live part as a whole. */
export class Stream {
  node = element('div', { class: 'stream' });
  #render;
  #grow;
  #voice;
  #speaker = null;
  #answer = null;
  /** What is in the log, until the transcript shows it: `{seq, end}`. */
  #leaving = [];
  #answers = element('div');
  #todos = element('ul', { class: 'todos', hidden: true });
  #notices = element('div', { class: 'notices' });
  #retry = element('div', { class: 'buttons', hidden: true, 'data-writes': '' });
  #stale = element('p', { class: 'notice warning', role: 'status', hidden: true });
  #pending = element('div', { class: 'pending' });
  #onPending;

  /** `grow` runs a change and follows the end; `onPending` has `retry(id)`, `discard(item)` and `edit(item)`. */
  constructor({ render, grow, voice, onPending }) {
    this.#render = render;
    this.#grow = grow;
    this.#voice = voice;
    this.#onPending = onPending;
    this.node.append(this.#answers, this.#todos, this.#notices, this.#retry, this.#stale, this.#pending);
  }

  /** Forgets the answer in progress: the turn is over, or its state is sent anew. */
  reset() {
    this.#grow(() => {
      this.#answer?.node.remove();
      this.#answer = null;
      this.#todos.hidden = true;
    });
  }

  /** Begins the answer of a speaker. */
  ask(speaker) {
    if (this.#answer && this.#answer.isEmpty) this.reset();
    this.#speaker = speaker;
  }

  text(text) {
    this.#grow(() => this.#current().append(text));
  }

  thought(text) {
    this.#grow(() => this.#current().think(text));
  }

  /** Shows another event of an agent. */
  agentEvent(event) {
    if (typeof event !== 'object' || event === null) return;
    const [[name, value]] = Object.entries(event);
    this.#grow(() => {
      if (name === 'tool_started') this.#current().startTool(value);
      else if (name === 'tool_output') this.#current().toolOutput(value.id, value.tail);
      else if (name === 'tool_completed') this.#current().toolOutput(value.id, value.output, value.ok);
      else if (name === 'todos') this.#showTodos(value);
      else if (name === 'remark') this.notice('note', value);
      else if (name === 'retrying') this.notice('warning', `Trying again: ${value.reason ?? value.message ?? 'the request failed'}`);
    });
  }

  /** True while a tool call is shown here. */
  get hasCalls() {
    return Boolean(this.#answer?.hasCalls);
  }

  /** The answer so far is entry `seq` of the log. It stays until the transcript has that entry. */
  leave(seq) {
    if (!this.#answer) return;
    const answer = this.#answer;
    this.#leaving.push({ seq, end: () => answer.node.remove() });
    this.#answer = null;
    if (answer.hasCalls) this.#current().adopt(answer);
  }

  /** The result of a tool call is entry `seq` of the log. */
  leaveTool(id, seq) {
    this.#leaving.push({ seq, end: () => this.#answer?.dropTool(id) });
  }

  /** Removes what is in the log up to entry `seq`, which the transcript shows now. */
  arrived(seq) {
    const leaving = this.#leaving;
    this.#leaving = leaving.filter((one) => one.seq > seq);
    for (const one of leaving) if (one.seq <= seq) one.end();
  }

  notice(tone, text) {
    this.#grow(() => {
      this.#notices.append(element('p', { class: `notice ${tone}` }, text));
      while (this.#notices.children.length > MOST_NOTICES) this.#notices.firstChild.remove();
    });
  }

  /** Offers to ask again, by `run`, or no longer. */
  showRetry(run) {
    if (this.#retry.hidden === !run) return;
    this.#grow(() => {
      this.#retry.hidden = !run;
      this.#retry.replaceChildren(...(run ? [element('button', { type: 'button', onclick: run }, 'Try again')] : []));
    });
  }

  /** Says that the transcript lacks something, or no longer. */
  showStale(words) {
    if (this.#stale.textContent === (words ?? '')) return;
    this.#grow(() => {
      this.#stale.hidden = !words;
      this.#stale.textContent = words ?? '';
    });
  }

  clearNotices() {
    this.#notices.replaceChildren();
  }

  /** Shows the messages that are not in the log yet. */
  showPending(items, isAnswering) {
    this.#grow(() => this.#pending.replaceChildren(...items.map((item) => this.#drawPending(item, isAnswering))));
  }

  #drawPending(item, isAnswering) {
    const words = {
      unsent: 'not sent yet: waiting for the connection',
      accepted: isAnswering ? 'queued: sent when the current answer ends' : 'sending…',
      queued: 'queued: sent when the current answer ends',
      draft: `not sent: ${REASONS[item.reason] ?? 'a draft'}`,
      refused: `not sent: ${item.problem}`,
    };
    const button = (label, run) => element('button', { type: 'button', onclick: () => run(item) }, label);
    const { retry, discard, edit } = this.#onPending;
    const buttons = {
      queued: [button('Edit', edit), button('Remove', discard)],
      draft: [button('Edit', edit), button('Discard', discard)],
      refused: [button('Try again', ({ client_id: id }) => retry(id)), button('Discard', discard)],
    };
    return element('article', { class: `entry human waiting is-${item.state}` },
      element('header', {}, element('strong', {}, 'You'), ' ', element('span', { class: 'facts' }, words[item.state] ?? '')),
      element('div', { class: 'text plain' }, item.text),
      buttons[item.state] && element('div', { class: 'buttons', 'data-writes': '' }, ...buttons[item.state]));
  }

  #current() {
    if (!this.#answer) {
      const { name = 'agent', displayName = name } = this.#speaker ?? {};
      this.#answer = new Answer({ name: displayName, voice: this.#voice(name), render: this.#render, grow: this.#grow });
      this.#answers.append(this.#answer.node);
    }
    return this.#answer;
  }

  #showTodos(todos) {
    const signs = { pending: '○', in_progress: '◐', completed: '●', cancelled: '⊘' };
    this.#todos.hidden = !todos.length;
    this.#todos.replaceChildren(...todos.map(({ text, state }) => element('li', { class: state }, `${signs[state] ?? '○'} ${text}`)));
  }
}
