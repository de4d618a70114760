// The session list: filters, search by title and by words with snippets, and what is live. Rows are
// links, so that the browser's own keys and menus work.

import { menu, showHelp } from './dialogs.js';
import { age, complain, counted, debounced, element, icon, iconButton } from './dom.js';

const PAGE = 50;
const LIVE = { answering: 'answering', asking: 'asks you', opening: 'opening', waiting: 'open' };

export class SessionList {
  #app;
  #query = '';
  #filters = { kind: '', project: '', tag: '', trash: '' };
  #cursor = null;
  #sessions = [];
  #live = new Map();
  #request = 0;
  #current = '';
  #search = element('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search sessions', autocapitalize: 'off', spellcheck: 'false', enterkeyhint: 'search' });
  #selects = {
    kind: element('select', { 'aria-label': 'Kind' }),
    project: element('select', { 'aria-label': 'Project' }),
    tag: element('select', { 'aria-label': 'Tag' }),
    trash: element('select', { 'aria-label': 'Trash' }),
  };
  #rows = element('ul', { class: 'rows' });
  #more = element('button', { type: 'button', class: 'more', hidden: true, onclick: () => this.#load(true) }, 'Show more');
  #hitsTitle = element('h2', { hidden: true });
  #hits = element('ul', { class: 'rows hits' });
  #remark = element('p', { class: 'dim remark', hidden: true });

  constructor(app, node) {
    this.#app = app;
    const filters = element('div', { class: 'filters', hidden: true }, ...Object.values(this.#selects));
    const toggle = iconButton('filter', 'Filters', () => {
      filters.hidden = !filters.hidden;
      toggle.setAttribute('aria-expanded', String(!filters.hidden));
      if (!filters.hidden) this.#loadFacets();
    }, { 'aria-expanded': 'false' });
    const scroller = element('div', { class: 'scroll' }, this.#rows, this.#more, this.#remark, this.#hitsTitle, this.#hits);
    node.append(
      element('header', {}, element('a', { class: 'brand', href: '/' }, element('img', { src: '/assets/icon.svg', alt: '', width: '26', height: '26' }), 'tertulia'),
        iconButton('more', 'Menu', (event) => menu(event.currentTarget, [
          ['Statistics', () => app.go('/stats'), 's'],
          ['Undo the last change', () => app.undo(), 'u'],
          ['Keys', () => showHelp(), '?'],
          ['Sign out', () => app.signOut()],
        ]), { 'aria-haspopup': 'menu' }),
        element('a', { class: 'quiet', href: '/new', 'aria-label': 'New session', title: 'New session (n)' }, icon('pen'))),
      element('div', { class: 'search' }, icon('search'), this.#search, toggle), filters, scroller);
    for (const [name, select] of Object.entries(this.#selects)) {
      select.addEventListener('change', () => {
        this.#filters[name] = select.value;
        this.refresh();
        this.#find();
      });
    }
    options(this.#selects.kind, [['', 'Any kind'], ['chat', 'Chats'], ['team', 'Teams'], ['pair', 'Pairs']]);
    options(this.#selects.trash, [['', 'Not in the trash'], ['yes', 'In the trash']]);
    const soon = debounced(() => {
      this.#load(false);
      this.#find();
    }, 150);
    this.#search.addEventListener('input', () => {
      this.#query = this.#search.value.trim();
      this.#drawRows();
      soon();
    });
    this.#search.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown' || event.key === 'Enter') {
        event.preventDefault();
        this.move(1);
        if (event.key === 'Enter') document.activeElement.closest('.rows a')?.click();
      }
    });
    new IntersectionObserver(([seen]) => seen.isIntersecting && this.#cursor && this.#load(true), { root: scroller, rootMargin: '400px' }).observe(this.#more);
  }

  focusSearch() {
    this.#search.focus();
    this.#search.select();
  }

  /** Empties the search. Returns false if it was empty. */
  clearSearch() {
    if (!this.#query) return false;
    this.#search.value = '';
    this.#search.dispatchEvent(new Event('input'));
    return true;
  }

  /** Moves the focus by one row. */
  move(step) {
    const links = [...document.querySelectorAll('#list .rows a')];
    const at = links.indexOf(document.activeElement);
    const current = links.findIndex((link) => link.matches('[aria-current]'));
    const from = at >= 0 ? at : document.activeElement === this.#search ? -1 : current;
    links[Math.max(0, Math.min(links.length - 1, from + step))]?.focus();
  }

  /** Marks the session that is open. */
  showCurrent(id) {
    this.#current = id;
    for (const link of this.#rows.querySelectorAll('a')) {
      if (link.dataset.id === id) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  refresh() {
    return this.#load(false);
  }

  /** Shows what the open session does, before the server is asked for all. */
  showPhase(id, phase) {
    if (this.#live.get(id) === phase) return;
    const hasEnded = phase === 'waiting' && this.#live.has(id);
    this.#live.set(id, phase);
    if (hasEnded) this.refresh();
    else this.#drawRows();
  }

  /** Takes what is live from a reply to `ps`. Loads the list again if something ended or began. */
  showLive(talks) {
    const live = new Map(talks.map(({ session_id: id, state }) => [id, state]));
    const isSame = live.size === this.#live.size && [...live].every(([id, state]) => this.#live.get(id) === state);
    if (isSame) return;
    this.#live = live;
    this.#drawRows();
    this.refresh();
  }

  async #load(isMore) {
    const request = ++this.#request;
    const { kind, project, tag, trash } = this.#filters;
    const fields = {
      limit: isMore ? PAGE : Math.min(500, Math.max(PAGE, this.#query ? 0 : this.#sessions.length)),
      cursor: isMore ? this.#cursor : undefined,
      title: this.#query || undefined,
      kind: kind || undefined,
      project: project || undefined,
      tag: tag || undefined,
      trash: trash ? true : undefined,
    };
    this.#cursor = null;
    try {
      const reply = await this.#app.connection.request('session_list', fields);
      if (request !== this.#request) return;
      this.#sessions = isMore ? [...this.#sessions, ...reply.sessions] : reply.sessions;
      this.#cursor = reply.next ?? null;
      this.#drawRows();
    } catch (error) {
      if (request === this.#request) complain(error);
    }
  }

  async #loadFacets() {
    const { projects = [], tags = [] } = await this.#app.connection.request('session_list', { limit: 1, facets: true }).catch(() => ({}));
    options(this.#selects.project, [['', 'All projects'], ...projects.map(({ id, name }) => [id, name])], this.#filters.project);
    options(this.#selects.tag, [['', 'Any tag'], ...tags.map((tag) => [tag, tag])], this.#filters.tag);
  }

  async #find() {
    const query = this.#query;
    this.#hits.replaceChildren();
    this.#hitsTitle.hidden = true;
    if (query.length < 2 || this.#filters.trash) return;
    const { kind, project, tag } = this.#filters;
    try {
      const { hits, total, pending } = await this.#app.connection.request('session_search',
        { query, limit: 40, kind: kind || undefined, project: project || undefined, tag: tag || undefined });
      if (query !== this.#query) return;
      this.#hitsTitle.hidden = false;
      this.#hitsTitle.textContent = pending ? `${counted(total, 'message')}, ${pending} not indexed yet` : counted(total, 'message');
      this.#hits.replaceChildren(...hits.map((hit) => drawHit(hit, query)));
    } catch (error) {
      if (query !== this.#query) return;
      this.#hitsTitle.hidden = false;
      this.#hitsTitle.textContent = error.message;
    }
  }

  #drawRows() {
    const words = this.#query.toLowerCase();
    // Until the server has filtered, what is loaded is filtered here.
    const shown = this.#sessions.filter(({ title }) => !words || (title ?? '').toLowerCase().includes(words));
    const focused = document.activeElement?.closest?.('#list .rows a')?.dataset.id;
    this.#rows.replaceChildren(...shown.map((session) => this.#drawRow(session)));
    if (focused) this.#rows.querySelector(`a[data-id="${CSS.escape(focused)}"]`)?.focus();
    this.#more.hidden = !this.#cursor;
    this.#remark.hidden = shown.length > 0;
    this.#remark.textContent = words ? 'No title has these words.' : this.#filters.trash ? 'The trash is empty.' : 'No sessions yet. Press n to begin one.';
  }

  #drawRow(session) {
    const { session_id: id, title, kind, team, agents, project, tags, message_count: messages, updated_at: updated } = session;
    const phase = this.#live.get(id) ?? session.live;
    const facts = [kind === 'chat' ? agents?.join(', ') : team ?? kind, project?.split('/').pop(), messages && counted(messages, 'message')].filter(Boolean);
    return element('li', {}, element('a', { href: `/s/${id}`, 'data-id': id, 'aria-current': id === this.#current ? 'page' : null },
      element('span', { class: 'title' }, title || 'Untitled'),
      element('time', { datetime: updated }, age(updated)),
      element('span', { class: 'line' },
        element('span', { class: 'facts' }, facts.join(' · '), ...(tags ?? []).map((tag) => element('span', { class: 'tag' }, tag))),
        LIVE[phase] && element('span', { class: `badge ${phase}` }, LIVE[phase]))));
  }
}

function options(select, values, chosen = '') {
  select.replaceChildren(...values.map(([value, words]) => element('option', { value, selected: value === chosen }, words)));
}

function drawHit({ session, seq, title, speaker, at, snippet }, query) {
  return element('li', {}, element('a', { href: `/s/${session}/${seq}`, 'data-id': `${session}/${seq}` },
    element('span', { class: 'title' }, title || 'Untitled'),
    element('time', { datetime: at }, age(at)),
    element('span', { class: 'snippet' }, element('b', {}, speaker ? `${speaker}: ` : ''), ...marked(snippet, query))));
}

/** Marks the words of a query in a snippet. */
function marked(snippet, query) {
  const words = query.replaceAll('"', ' ').split(/\s+/).filter((word) => word && !word.startsWith('-')).map((word) => word.replace(/\*$/, ''));
  if (!words.length) return [snippet];
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'giu');
  return snippet.split(pattern).map((part, at) => (at % 2 ? element('mark', {}, part) : part));
}
