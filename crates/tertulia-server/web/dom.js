// Elements, times and numbers. `fill` is the only function of the page that turns HTML text into
// elements, and only the server's `html` fields are given to it; everything else is text.

/** Creates an element with attributes, `on…` listeners and children. */
export function element(tag, attributes = {}, ...children) {
  return assemble(document.createElement(tag), attributes, children);
}

/** Creates an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return assemble(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function assemble(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

/** Names of the children that `reconcile` has drawn, and what they show. */
const drawn = new WeakMap();

/**
 * Makes the children of `parent` those of `items`, in their order. The child of a key stays, with
 * its focus and place, and is updated if `words(item)` has changed. `draw()` returns an empty child,
 * `update(child, item)` fills it.
 */
export function reconcile(parent, items, { key, words, draw, update }) {
  const wanted = new Set(items.map(key));
  const there = new Map();
  for (const child of [...parent.children]) {
    const name = drawn.get(child)?.key;
    if (wanted.has(name)) there.set(name, child);
    else child.remove();
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const child = there.get(name) ?? draw();
    const shown = words(item);
    if (drawn.get(child)?.shown !== shown) update(child, item);
    drawn.set(child, { key: name, shown });
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** Shows HTML that the server has rendered. */
export function fill(target, html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  for (const link of template.content.querySelectorAll('a[href^="http"], a[href^="mailto:"]')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
  }
  target.replaceChildren(template.content);
}

/** Address of the product's own sign. */
export const ICON = new URL('./icon.svg', import.meta.url).pathname;

const ICONS = {
  back: 'M15 5l-7 7 7 7',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  down: 'M12 5v14M6 13l6 6 6-6',
  filter: 'M4 7h16M7 12h10M10 17h4',
  fork: 'M6 4v16M6 9c0 5 10 2 10 8M16 20v-3M4 4h4M14 20h4',
  more: 'M5 11v2M12 11v2M19 11v2',
  pen: 'M12 5v14M5 12h14',
  search: 'M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l4 4',
  send: 'M5 12h14M13 6l6 6-6 6',
  stop: 'M7 7h10v10H7z',
};

/** Returns a drawing of the page's own set. */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: ICONS[name] }));
}

/** Creates a button with a drawing and a name for screen readers. */
export function iconButton(name, label, onclick, more = {}) {
  return element('button', { type: 'button', class: 'quiet', 'aria-label': label, title: label, onclick, ...more }, icon(name));
}

const DAY = 86_400_000;
const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** Returns a time as short as it stays clear: hour, day or date. */
export function shortTime(text, now = new Date()) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return '';
  if (at.toDateString() === now.toDateString()) return hour.format(at);
  return now - at < 300 * DAY ? `${dayOfYear.format(at)}, ${hour.format(at)}` : date.format(at);
}

/** Returns the age of a time: `3 min`, `5 h`, `2 d`, else the date. */
export function age(text, now = Date.now()) {
  const seconds = Math.max(0, (now - new Date(text)) / 1000);
  if (seconds < 60) return 'now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return seconds < 300 * 86_400 ? dayOfYear.format(new Date(text)) : date.format(new Date(text));
}

const compactNumber = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Returns a number in few characters: `12.3K`. */
export function compact(number) {
  return compactNumber.format(number);
}

/** Returns a count with its noun. */
export function counted(count, noun) {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Says something to screen readers: politely, or at once if it needs an answer. */
export function announce(text, isUrgent = false) {
  document.getElementById(isUrgent ? 'alert' : 'announce').textContent = text;
}

/** Shows a short remark that goes away by itself. `action` is `{label, run}`. */
export function toast(text, { tone = 'note', action } = {}) {
  const shown = element('div', { class: `toast ${tone}` }, element('span', {}, text));
  const end = () => shown.remove();
  if (action) {
    shown.append(element('button', { type: 'button', onclick: () => { end(); action.run(); } }, action.label));
  }
  shown.append(iconButton('close', 'Dismiss', end));
  const toasts = document.getElementById('toasts');
  toasts.append(shown);
  while (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(end, tone === 'error' ? 12_000 : 6_000);
}

/** Shows why a request failed, with a way to try it `again`. */
export function complain(error, again) {
  const words = error.hint ? `${error.message} (${error.hint})` : error.message;
  toast(words, { tone: 'error', action: again && { label: 'Try again', run: again } });
}

/** Says that this login may only read, where it may. */
export function readOnly() {
  return element('span', { class: 'tag', 'data-reads': '', title: 'This login may only read' }, 'read-only');
}

/** Rows that stand for what is still loading. */
export function ghosts(count) {
  return Array.from({ length: count }, () => element('li', { class: 'ghost', 'aria-hidden': 'true' }));
}

/** Says in place of a part of the page why it cannot be shown, with a way to try it `again`. */
export function failed(error, again) {
  return element('div', { class: 'empty' }, element('p', {}, error.message), error.hint && element('p', { class: 'dim' }, error.hint),
    again && element('div', { class: 'buttons' }, element('button', { type: 'button', onclick: again }, 'Try again')));
}

/** Copies a text, and says so on the button. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.classList.add('is-done');
    setTimeout(() => button.classList.remove('is-done'), 1200);
    announce('Copied');
  } catch {
    toast('The browser does not allow copying here', { tone: 'warning' });
  }
}

/** Returns a function that runs `task` once, `delay` milliseconds after its last call. */
export function debounced(task, delay) {
  let timer;
  return (...words) => {
    clearTimeout(timer);
    timer = setTimeout(() => task(...words), delay);
  };
}

/** Returns true if keys typed at this element are text. */
export function isEditable(target) {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=button])'));
}
