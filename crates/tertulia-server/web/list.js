// The session list: filters, search by title and by words with snippets, and what is live. Rows are
// links, so that the browser's own keys and menus work.

import { menu, showHelp } from './dialogs.js';
import { ICON, age, complain, counted, debounced, element, failed, ghosts, icon, iconButton, readOnly, reconcile } from './dom.js';

/** Sessions that are added at once. */
const PAGE = 50;
/** Most sessions that are asked for at once. */
const MOST = 500;
const LIVE = { answering: 'answering', asking: 'asks you', opening: 'opening', waiting: 'open' };

export class SessionList {
  #app;
  #query = '';
  #filters = { kind: '', project: '', tag: '', trash: '' };
  #cursor = null;
  /** `null` until they are known. */
  #sessions = null;
  #live = new Map();
  /** Changes with the choice of sessions: what was asked for before does not count. */
  #turn = 0;
  /** Loads are done one after another. */
  #loads = Promise.resolve();
  #willRefresh = false;
  #current = '';
  #search = element('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search sessions', autocapitalize: 'off', spellcheck: 'false', enterkeyhint: 'search' });
  #selects = {
    kind: element('select', { 'aria-label': 'Kind' }),
    project: element('select', { 'aria-label': 'Project' }),
    tag: element('select', { 'aria-label': 'Tag' }),
    trash: element('select', { 'aria-label': 'Trash' }),
  };
  #panel = element('div', { class: 'filters', hidden: true }, ...Object.values(this.#selects));
  #chips = element('div', { class: 'chips', hidden: true });
  #rows = element('ul', { class: 'rows' });
  #more = element('button', { type: 'button', class: 'more', hidden: true, onclick: () => this.#loadMore() }, 'Show more');
  #hitsTitle = element('h2', { hidden: true });
  #hits = element('ul', { class: 'rows hits' });
  #remark = element('p', { class: 'dim remark', hidden: true });
  #begin = element('p', { class: 'buttons', hidden: true, 'data-writes': '' }, element('a', { class: 'primary', href: '/new' }, 'New session'));

  constructor(app, node) {
    this.#app = app;
    const toggle = iconButton('filter', 'Filters', () => {
      this.#panel.hidden = !this.#panel.hidden;
      toggle.setAttribute('aria-expanded', String(!this.#panel.hidden));
      if (!this.#panel.hidden) this.#loadFacets();
      this.#drawChips();
    }, { 'aria-expanded': 'false' });
    const scroller = element('div', { class: 'scroll' }, this.#rows, this.#more, this.#remark, this.#begin, this.#hitsTitle, this.#hits);
    node.append(
      element('header', {}, element('a', { class: 'brand', href: '/' }, element('img', { src: ICON, alt: '', width: '26', height: '26' }), 'tertulia', readOnly()),
        iconButton('more', 'Menu', (event) => menu(event.currentTarget, [
          ['Statistics', () => app.go('/stats'), 's'],
          app.mayWrite && ['Undo the last change', () => app.undo(), 'u'],
          ['Keys', () => showHelp(), '?'],
          ['Sign out', () => app.signOut()],
        ]), { 'aria-haspopup': 'menu' }),
        element('a', { class: 'quiet', href: '/new', 'aria-label': 'New session', title: 'New session (n)', 'data-writes': '' }, icon('pen'))),
      element('div', { class: 'search' }, icon('search'), this.#search, toggle), this.#panel, this.#chips, scroller);
    for (const [name, select] of Object.entries(this.#selects)) select.addEventListener('change', () => this.#choose(name, select.value));
    options(this.#selects.kind, [['', 'Any kind'], ['chat', 'Chats'], ['team', 'Teams'], ['pair', 'Pairs']]);
    options(this.#selects.project, [['', 'All projects']]);
    options(this.#selects.tag, [['', 'Any tag']]);
    options(this.#selects.trash, [['', 'Not in the trash'], ['yes', 'In the trash']]);
    const soon = debounced(() => this.#chosen(), 150);
    this.#search.addEventListener('input', () => {
      this.#query = this.#search.value.trim();
      this.#drawRows();
      soon();
    });
    this.#drawRows();
    this.#search.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown' || event.key === 'Enter') {
        event.preventDefault();
        this.move(1);
        if (event.key === 'Enter') document.activeElement.closest('.rows a')?.click();
      }
    });
    new IntersectionObserver(([seen]) => seen.isIntersecting && this.#loadMore(), { root: scroller, rootMargin: '400px' }).observe(this.#more);
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

  /** Reads as many sessions again as are shown. */
  refresh() {
    if (this.#willRefresh) return;
    this.#willRefresh = true;
    this.#enqueue(async () => {
      this.#willRefresh = false;
      const sessions = [];
      let cursor;
      do {
        const missing = Math.max(PAGE, this.#sessions?.length ?? 0) - sessions.length;
        const reply = await this.#read(Math.min(MOST, missing), cursor);
        sessions.push(...reply.sessions);
        cursor = reply.next ?? null;
      } while (cursor && sessions.length < (this.#sessions?.length ?? 0));
      return [sessions, cursor];
    });
  }

  /** Shows what has become known of a session, if it is in the list. */
  put(session) {
    const at = this.#sessions?.findIndex(({ session_id: id }) => id === session.session_id) ?? -1;
    if (at < 0) return;
    this.#sessions[at] = session;
    this.#drawRows();
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

  #loadMore() {
    if (!this.#cursor) return;
    this.#enqueue(async () => {
      if (!this.#cursor) return null;
      const { sessions, next } = await this.#read(PAGE, this.#cursor);
      const known = new Set(this.#sessions.map(({ session_id: id }) => id));
      return [[...this.#sessions, ...sessions.filter(({ session_id: id }) => !known.has(id))], next ?? null];
    });
  }

  /** Loads sessions after those that are loading already, and shows them unless others are chosen meanwhile. */
  #enqueue(load) {
    const turn = this.#turn;
    this.#loads = this.#loads.then(async () => {
      if (turn !== this.#turn) return;
      const loaded = await load();
      if (turn !== this.#turn || !loaded) return;
      [this.#sessions, this.#cursor] = loaded;
      this.#drawRows();
    }).catch((error) => turn === this.#turn && this.#failed(error));
  }

  /** Says that sessions could not be loaded: in the place of the list if there is none yet. */
  #failed(error) {
    if (this.#sessions) return complain(error, () => this.refresh());
    this.#rows.replaceChildren(element('li', {}, failed(error, () => this.refresh())));
  }

  #read(limit, cursor) {
    return this.#app.connection.request('session_list',
      { limit, cursor, title: this.#query || undefined, trash: this.#filters.trash ? true : undefined, ...this.#chosenFilters() });
  }

  #chosenFilters() {
    const { kind, project, tag } = this.#filters;
    return { kind: kind || undefined, project: project || undefined, tag: tag || undefined };
  }

  #choose(name, value) {
    this.#filters[name] = value;
    this.#selects[name].value = value;
    this.#drawChips();
    this.#chosen();
  }

  /** Begins a list of other sessions. */
  #chosen() {
    this.#turn += 1;
    this.#willRefresh = false;
    this.#sessions?.splice(PAGE);
    // A place in the list before is none in this one.
    this.#cursor = null;
    this.refresh();
    this.#find();
  }

  /** Shows the filters that are active, while their panel is closed. */
  #drawChips() {
    const active = Object.entries(this.#filters).filter(([, value]) => value);
    this.#chips.hidden = !this.#panel.hidden || !active.length;
    this.#chips.replaceChildren(...active.map(([name]) => {
      const words = this.#selects[name].selectedOptions[0]?.textContent;
      return element('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter ${words}`, onclick: () => this.#choose(name, '') }, `${words} ×`);
    }));
  }

  async #loadFacets() {
    const { projects = [], tags = [] } = await this.#app.connection.request('session_list', { limit: 1, facets: true }).catch(() => ({}));
    options(this.#selects.project, [['', 'All projects'], ...projects.map(({ id, name }) => [id, name])], this.#filters.project);
    options(this.#selects.tag, [['', 'Any tag'], ...tags.map((tag) => [tag, tag])], this.#filters.tag);
  }

  async #find() {
    const query = this.#query;
    const turn = this.#turn;
    this.#hits.replaceChildren();
    this.#hitsTitle.hidden = true;
    if (query.length < 2 || this.#filters.trash) return;
    this.#hits.replaceChildren(...ghosts(3));
    try {
      const { hits, total, pending } = await this.#app.connection.request('session_search', { query, limit: 40, ...this.#chosenFilters() });
      if (turn !== this.#turn) return;
      this.#hitsTitle.hidden = false;
      this.#hitsTitle.textContent = pending ? `${counted(total, 'message')}, ${pending} not indexed yet` : counted(total, 'message');
      this.#hits.replaceChildren(...hits.map((hit) => drawHit(hit, query)));
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#hits.replaceChildren();
      this.#hitsTitle.hidden = false;
      this.#hitsTitle.textContent = error.message;
    }
    this.#drawRows();
  }

  #drawRows() {
    if (!this.#sessions) return this.#rows.replaceChildren(...ghosts(8));
    const words = this.#query.toLowerCase();
    // Until the server has filtered, what is loaded is filtered here.
    const shown = this.#sessions.filter(({ title }) => !words || (title ?? '').toLowerCase().includes(words));
    reconcile(this.#rows, shown, {
      key: ({ session_id: id }) => id,
      words: (session) => JSON.stringify([this.#phase(session), age(session.updated_at), session]),
      draw: () => element('li', {}, element('a')),
      update: (row, session) => this.#fillRow(row.firstChild, session),
    });
    this.#more.hidden = !this.#cursor;
    const isEmpty = !shown.length;
    const isFiltered = words || Object.values(this.#filters).some(Boolean);
    this.#remark.hidden = !isEmpty || this.#hits.children.length > 0;
    this.#begin.hidden = !isEmpty || Boolean(isFiltered);
    this.#remark.textContent = words ? 'No title has these words.' : this.#filters.trash ? 'The trash is empty.'
      : isFiltered ? 'No session fits these filters.' : 'No sessions yet.';
  }

  #phase({ session_id: id, live }) {
    return this.#live.get(id) ?? live;
  }

  #fillRow(link, session) {
    const { session_id: id, title, kind, team, agents, project, tags, message_count: messages, updated_at: updated } = session;
    const phase = this.#phase(session);
    const facts = [kind === 'chat' ? agents?.join(', ') : team ?? kind, project?.split('/').pop(), messages && counted(messages, 'message')].filter(Boolean);
    link.href = `/s/${id}`;
    link.dataset.id = id;
    if (id === this.#current) link.setAttribute('aria-current', 'page');
    link.replaceChildren(
      element('span', { class: 'title' }, title || 'Untitled'),
      element('time', { datetime: updated }, age(updated)),
      element('span', { class: 'line' },
        element('span', { class: 'facts' }, facts.join(' · '), ...(tags ?? []).map((tag) => element('span', { class: 'tag' }, tag))),
        LIVE[phase] && element('span', { class: `badge ${phase}` }, LIVE[phase])));
  }
}

function options(select, values, chosen = '') {
  select.replaceChildren(...values.map(([value, words]) => element('option', { value, selected: value === chosen }, words)));
}

function drawHit({ session, seq, title, speaker, at, snippet }, query) {
  return element('li', {}, element('a', { href: `/s/${session}/${seq}`, 'data-id': `${session}/${seq}` },
    element('span', { class: 'title' }, title || 'Untitled'),
    element('time', { datetime: at }, age(at)),
    element('span', { class: 'snippet' }, element('b', {}, speaker ? `${speaker.displayName}: ` : ''), ...marked(snippet, query))));
}

/** Marks the words of a query in a snippet. */
function marked(snippet, query) {
  const words = query.replaceAll('"', ' ').split(/\s+/).filter((word) => word && !word.startsWith('-')).map((word) => word.replace(/\*$/, ''));
  if (!words.length) return [snippet];
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'giu');
  return snippet.split(pattern).map((part, at) => (at % 2 ? element('mark', {}, part) : part));
}
