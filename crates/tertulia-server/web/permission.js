// Permission requests: what the agent wants to do, above the input, with the buttons and keys that
// answer. The first answer of any frontend counts.

import { decorate } from './decorate.js';
import { announce, element, fill, isEditable } from './dom.js';

/** Keys that answer while nothing is typed; with Alt they answer anywhere. */
const KEYS = { y: 'yes', a: 'always', n: 'no', w: 'words' };

/** Longest wait for a rendered preview, in milliseconds. */
const RENDER_TIME = 500;

export class Permission {
  node = element('section', { class: 'permission', 'aria-label': 'Permission request', hidden: true });
  /** Open requests, oldest first. */
  #requests = [];
  /** The request that is shown. */
  #shown = null;
  /** Rendered previews by tool call; `null` if the server has not rendered one in time. */
  #previews = new Map();
  #renderPreview;
  #answer;
  #mayAnswer;
  #count = element('span', { class: 'facts' });
  #words = null;

  /** `answer(toolId, verdict, reason)` sends a verdict, if this login may do that: `mayAnswer()`. */
  constructor({ renderPreview, answer, mayAnswer }) {
    this.#renderPreview = renderPreview;
    this.#answer = answer;
    this.#mayAnswer = mayAnswer;
  }

  /** Shows the requests that are open, each once its preview is rendered: buttons that move are pressed by mistake. */
  show(requests) {
    const known = new Set(this.#requests.map(({ call }) => call.id));
    this.#requests = requests;
    for (const request of requests) if (!known.has(request.call.id)) this.#prepare(request);
    this.#draw();
  }

  async #prepare(request) {
    const { id, name } = request.call;
    announce(`Permission request: ${name}. ${request.preview.slice(0, 200)}`, true);
    const late = new Promise((resolve) => setTimeout(() => resolve(null), RENDER_TIME));
    this.#previews.set(id, await Promise.race([this.#renderPreview(request.preview).catch(() => null), late]));
    this.#draw();
  }

  /** Handles a key. Returns true if it was an answer. */
  key(event) {
    const code = event.code?.startsWith('Key') ? event.code.slice(3).toLowerCase() : '';
    const key = event.altKey ? code : event.key;
    if (!this.#shown || !this.#mayAnswer() || !KEYS[key] || event.ctrlKey || event.metaKey) return false;
    if (!event.altKey && isEditable(event.target)) return false;
    this.#choose(KEYS[key]);
    return true;
  }

  #choose(verdict) {
    if (verdict === 'words') return this.#askWords();
    this.#send(this.#shown, verdict);
  }

  #send(request, verdict, reason) {
    const enable = (isEnabled) => {
      for (const button of this.node.querySelectorAll('button')) button.disabled = !isEnabled;
    };
    enable(false);
    this.#answer(request.call.id, verdict, reason).catch(() => enable(true));
  }

  #askWords() {
    this.#words.hidden = false;
    this.#words.querySelector('input').focus();
  }

  #draw() {
    const [request] = this.#requests;
    const isReady = request && this.#previews.has(request.call.id);
    this.#count.textContent = this.#requests.length > 1 ? ` and ${this.#requests.length - 1} more` : '';
    if (isReady && request === this.#shown) return;
    this.#shown = isReady ? request : null;
    this.node.hidden = !isReady;
    this.node.replaceChildren(...(isReady ? this.#parts(request) : []));
    const open = new Set(this.#requests.map(({ call }) => call.id));
    for (const id of this.#previews.keys()) if (!open.has(id)) this.#previews.delete(id);
  }

  #parts(request) {
    const preview = element('div', { class: 'preview', tabindex: '0' }, element('pre', {}, request.preview));
    const html = this.#previews.get(request.call.id);
    if (html) fill(preview, html);
    decorate(preview);
    const button = (verdict, label, key, kind = '') => element('button', {
      type: 'button', class: kind, title: `${label} (Alt+${key.toUpperCase()}, or ${key} while you do not type)`,
      onclick: () => this.#choose(verdict),
    }, label, ' ', element('kbd', {}, `Alt+${key.toUpperCase()}`));
    const reason = element('input', { type: 'text', 'aria-label': 'What to do instead', placeholder: 'What should the agent do instead?' });
    this.#words = element('form', { class: 'words', hidden: true, onsubmit: (event) => {
      event.preventDefault();
      this.#send(request, 'no', reason.value.trim() || undefined);
    } }, reason, element('button', { class: 'danger' }, 'Deny'));
    return [
      element('h2', {}, `Allow ${request.call.name}? `, element('span', { class: `risk ${request.risk}` }, `${request.risk} risk`), this.#count),
      request.folder && element('p', { class: 'facts' }, 'in ', element('code', {}, request.folder)),
      element('div', { class: 'what' }, preview, element('p', { class: 'facts' }, 'Always allows: ', element('code', {}, request.key))),
      element('div', { class: 'buttons', 'data-writes': '' }, button('yes', 'Allow once', 'y', 'primary'), button('always', 'Always', 'a'),
        button('no', 'Deny', 'n', 'danger'), button('words', 'Deny with words…', 'w')),
      element('p', { class: 'facts', 'data-reads': '' }, 'This login may only read: it is answered elsewhere.'),
      this.#words];
  }
}
