// The input: writes, sends and cancels. Below it stand the agent, the model, the tool policy and how
// full the context is. Drafts are kept at every key.

import { debounced, element, icon } from './dom.js';
import { draft, keepDraft } from './store.js';

const isTouch = matchMedia('(pointer: coarse)');

export class Composer {
  #text = element('textarea', { rows: '1', 'aria-label': 'Message', placeholder: 'Write a message', enterkeyhint: 'enter' });
  #send = element('button', { type: 'submit', class: 'send', 'aria-label': 'Send', title: 'Send (Enter)' }, icon('send'));
  #stop = element('button', { type: 'button', class: 'stop', hidden: true, title: 'Cancel the answer (Esc)' }, icon('stop'), ' Cancel');
  #status = element('span', { class: 'status', role: 'status' });
  #elapsed = element('span', { class: 'elapsed', 'aria-hidden': 'true' });
  #queue = element('div', { class: 'queue', hidden: true });
  #settings = element('button', { type: 'button', class: 'chip', title: 'Agent, model and tool policy' }, 'Settings');
  #context = element('span', { class: 'facts' });
  #sessionId;
  #since = 0;
  #timer;
  #keep = () => keepDraft(this.#sessionId, this.#text.value);

  /** `actions` has `send(text)`, `cancel()` and `configure()`. */
  constructor(sessionId, actions) {
    this.#sessionId = sessionId;
    this.#text.value = draft(sessionId);
    const keep = debounced(this.#keep, 150);
    this.#text.addEventListener('input', () => {
      this.#fit();
      keep();
    });
    this.#text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || isTouch.matches) return;
      event.preventDefault();
      this.node.requestSubmit();
    });
    this.#stop.addEventListener('click', actions.cancel);
    this.#settings.addEventListener('click', actions.configure);
    this.node = element('form', { class: 'composer', 'aria-label': 'Write', 'data-writes': '', onsubmit: (event) => {
      event.preventDefault();
      const text = this.#text.value;
      if (text.trim() === '') return;
      this.set('');
      actions.send(text);
    } },
    element('div', { class: 'progress' }, this.#status, this.#elapsed, this.#stop),
    this.#queue,
    element('div', { class: 'input' }, this.#text, this.#send),
    element('div', { class: 'under' }, this.#settings, this.#context));
    window.addEventListener('pagehide', this.#keep);
  }

  close() {
    this.#keep();
    clearInterval(this.#timer);
    window.removeEventListener('pagehide', this.#keep);
  }

  /** Replaces the text. */
  set(text) {
    this.#text.value = text;
    this.#fit();
    this.#keep();
  }

  /** Adds a text below what is written. */
  add(text) {
    const written = this.#text.value;
    this.set(written.trim() ? `${written}\n${text}` : text);
    this.focus();
  }

  focus() {
    this.#text.focus({ preventScroll: true });
    this.#fit();
  }

  /** Shows what the session does: `null` if it waits for a message. */
  showStatus(words) {
    const isBusy = words !== null;
    this.node.classList.toggle('is-busy', isBusy);
    this.#status.textContent = words ?? '';
    this.#stop.hidden = !isBusy;
    clearInterval(this.#timer);
    if (!isBusy) {
      this.#since = 0;
      this.#elapsed.textContent = '';
      return;
    }
    this.#since ||= Date.now();
    const tick = () => {
      const seconds = Math.floor((Date.now() - this.#since) / 1000);
      this.#elapsed.textContent = seconds < 2 ? '' : seconds < 60 ? ` ${seconds} s` : ` ${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    };
    tick();
    this.#timer = setInterval(tick, 1000);
  }

  /** Counts from this time, at which the answer began, while one is under way. */
  beganAt(time) {
    if (time < Date.now() && !this.#stop.hidden) this.#since = time;
  }

  /** Shows who speaks next in a team, or the round of a pair. */
  showQueue(words) {
    this.#queue.hidden = !words;
    this.#queue.textContent = words ?? '';
  }

  /** Shows agent, model, tool policy and context. */
  showSettings({ agent, model, policy, context, writer }) {
    const parts = [agent, model, policy && `tools: ${policy}`].filter(Boolean);
    this.#settings.textContent = parts.length ? parts.join(' · ') : 'Settings';
    const full = context && `context ${Math.floor((context.tokens * 100) / Math.max(1, context.limit))} %`;
    this.#context.textContent = [writer && !/^you$/i.test(writer) && `writing as ${writer}`, full].filter(Boolean).join(' · ');
  }

  #fit() {
    this.#text.style.height = 'auto';
    this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
  }
}
