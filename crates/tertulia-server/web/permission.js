// Permission requests: what the agent wants to do, above the input, with the buttons and keys that
// answer. The first answer of any frontend counts.

import { announce, element, fill, isEditable } from './dom.js';
import { decorate } from './transcript.js';

/** Keys that answer while nothing is typed; with Alt they answer anywhere. */
const KEYS = { y: 'yes', a: 'always', n: 'no', w: 'words' };

/** Longest wait for a rendered preview, in milliseconds. */
const RENDER_TIME = 500;

export class Permission {
  node = element('section', { class: 'permission', 'aria-label': 'Permission request', hidden: true });
  #requests = new Map();
  #renderPreview;
  #answer;
  #words = null;

  /** `answer(toolId, verdict, reason)` sends a verdict. */
  constructor({ renderPreview, answer }) {
    this.#renderPreview = renderPreview;
    this.#answer = answer;
  }

  get isOpen() {
    return this.#requests.size > 0;
  }

  /** Shows a request once its preview is rendered: buttons that move are pressed by mistake. */
  async ask(request) {
    const { id, name } = request.call;
    this.#requests.set(id, request);
    announce(`Permission request: ${name}. ${request.preview.slice(0, 200)}`, true);
    const late = new Promise((resolve) => setTimeout(resolve, RENDER_TIME));
    request.html = await Promise.race([this.#renderPreview(request.preview).catch(() => null), late]);
    if (this.#requests.get(id) === request) this.#draw();
  }

  settle(toolId) {
    if (this.#requests.delete(toolId)) this.#draw();
  }

  clear() {
    this.#requests.clear();
    this.#draw();
  }

  /** Handles a key. Returns true if it was an answer. */
  key(event) {
    const code = event.code?.startsWith('Key') ? event.code.slice(3).toLowerCase() : '';
    const key = event.altKey ? code : event.key;
    if (!this.isOpen || !KEYS[key] || event.ctrlKey || event.metaKey) return false;
    if (!event.altKey && isEditable(event.target)) return false;
    this.#choose(KEYS[key]);
    return true;
  }

  #choose(verdict) {
    const [request] = this.#requests.values();
    if (verdict === 'words') return this.#askWords();
    this.#send(request, verdict);
  }

  #send(request, verdict, reason) {
    for (const button of this.node.querySelectorAll('button')) button.disabled = true;
    const enable = () => {
      for (const button of this.node.querySelectorAll('button')) button.disabled = false;
    };
    this.#answer(request.call.id, verdict, reason).catch(enable);
  }

  #askWords() {
    this.#words.hidden = false;
    this.#words.querySelector('input').focus();
  }

  #draw() {
    const [request] = this.#requests.values();
    this.node.hidden = !request;
    if (!request) return this.node.replaceChildren();
    const preview = element('div', { class: 'preview', tabindex: '0' }, element('pre', {}, request.preview));
    if (request.html) fill(preview, request.html);
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
    const more = this.#requests.size - 1;
    this.node.replaceChildren(
      element('h2', {}, `Allow ${request.call.name}? `, element('span', { class: `risk ${request.risk}` }, `${request.risk} risk`),
        more > 0 && element('span', { class: 'facts' }, ` and ${more} more`)),
      preview,
      element('div', { class: 'buttons' }, button('yes', 'Allow once', 'y', 'primary'), button('always', 'Always', 'a'),
        button('no', 'Deny', 'n', 'danger'), button('words', 'Deny with words…', 'w')),
      element('p', { class: 'facts' }, 'Always allows: ', element('code', {}, request.key)),
      this.#words);
  }
}
