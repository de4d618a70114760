// The transcript of a session: a window of about 200 entries over a log of any length. Spacers stand
// for the entries outside of the window, so that the scroll bar tells the truth. What is being read
// stays where it is while entries come and go around it.

import { decorate } from './decorate.js';
import { copy, element, fill, ghosts, iconButton } from './dom.js';
import { Follower } from './scroll.js';

/** Entries that are asked for at once. */
const PAGE = 60;
/** Most entries in the document. */
const MOST = 200;
/** Browsers limit the height of an element. A spacer stays far below. */
const TALLEST_SPACER = 4_000_000;
/** Distance to the end from which there is a button that leads there, in pixels. */
const FAR_FROM_END = 60;

export class Transcript {
  /** Sequence number of the last entry of the log. */
  head = 0;
  /** The loaded entries by sequence number: `{seq, html, node, speaker, isBare}`; bare is without text. */
  #entries = [];
  /** The part of the log that is loaded. Not every entry of it has something to show. */
  #first = 1;
  #last = 0;
  #moreBefore = false;
  #moreAfter = false;
  #isLoading = false;
  #marked = 0;
  #average = 120;
  #view;
  #follower;
  #fetchPage;
  #actions;
  #top = element('div', { class: 'spacer', 'aria-hidden': 'true' });
  #list = element('div', { class: 'entries' });
  #bottom = element('div', { class: 'spacer', 'aria-hidden': 'true' });
  #toEnd = iconButton('down', 'Go to the end', () => this.goToEnd(), { class: 'to-end', hidden: true });

  /**
   * `fetchPage` asks for a `session_page`, `live` is shown below the last entry, `actions` has
   * `fork(seq)`, `open(seq)` and `voice(name)`.
   */
  constructor({ fetchPage, live, actions }) {
    this.#fetchPage = fetchPage;
    this.#actions = actions;
    this.live = live;
    const inner = element('div', { class: 'column' }, this.#top, this.#list, this.#bottom, live);
    this.#view = element('div', { class: 'transcript', tabindex: '0', role: 'region', 'aria-label': 'Transcript' }, inner);
    this.node = element('div', { class: 'transcript-frame' }, this.#view, this.#toEnd);
    this.#follower = new Follower(this.#view, { isComplete: () => !this.#moreAfter, rested: () => this.#rested() });
    let isPlanned = false;
    this.#view.addEventListener('scroll', () => {
      if (isPlanned) return;
      isPlanned = true;
      requestAnimationFrame(() => {
        isPlanned = false;
        this.#scrolled();
      });
    }, { passive: true });
    this.#list.addEventListener('click', (event) => this.#clicked(event));
  }

  /** Shows something in place of the entries. */
  showInstead(...nodes) {
    this.#list.replaceChildren(...nodes);
  }

  /** Shows the end, or the entries around `seq`. Returns the page. */
  async open(seq) {
    if (!this.#last) this.showInstead(element('ul', { class: 'rows' }, ...ghosts(3)));
    const page = await this.#fetchPage({ around: seq || undefined, limit: PAGE });
    this.#replaceAll(page);
    if (seq) this.mark(seq);
    else this.#showEnd();
    return page;
  }

  /** Sequence number of the last loaded entry. */
  get last() {
    return this.#last;
  }

  /**
   * Fetches what follows entry `seq`, with earlier entries that show a part of it. Returns the page,
   * which is shown if the end is.
   */
  async refresh(seq) {
    const page = await this.#fetchPage({ after: seq, limit: PAGE });
    this.head = Math.max(this.head, page.head);
    if (this.#moreAfter) {
      this.#anchored(() => this.#space());
      this.#toEnd.classList.add('is-new');
      return page;
    }
    if (page.more_after) {
      // Too much has happened to show every entry that was missed.
      if (this.#follower.isFollowing) return this.open(0);
      this.#moreAfter = true;
      this.#anchored(() => {});
      return page;
    }
    this.#anchored(() => {
      this.#last = Math.max(this.#last, page.last);
      this.#put(page.entries.filter((entry) => entry.seq >= this.#first));
      if (this.#follower.isFollowing) this.#prune('top');
    });
    this.#toEnd.classList.toggle('is-new', !this.#follower.isFollowing);
    return page;
  }

  /** Scrolls to an entry that is loaded, or loads it, and marks it. */
  async goTo(seq) {
    if (!this.#find(seq)) return this.open(seq);
    this.mark(seq);
  }

  async goToEnd() {
    if (this.#moreAfter) await this.open(0);
    this.#showEnd();
  }

  /** Marks an entry, unfolds what hides it and scrolls to it. */
  mark(seq) {
    this.#marked = seq;
    this.#follower.stop();
    for (const old of this.#list.querySelectorAll('.is-marked')) old.classList.remove('is-marked');
    const target = this.#find(seq);
    if (!target) return;
    target.classList.add('is-marked');
    for (let up = target; up && up !== this.#list; up = up.parentElement) {
      if (up.localName === 'details') up.open = true;
    }
    this.#follower.move(() => target.scrollIntoView({ block: 'center' }));
    this.#list.querySelector(`#e${CSS.escape(seq)}`)?.closest('.entry')?.focus({ preventScroll: true });
  }

  /** Goes to the next (`1`) or the previous (`-1`) message of a person. */
  step(direction) {
    const edge = this.#view.getBoundingClientRect().top;
    const people = [...this.#list.querySelectorAll('.entry.human')];
    const place = (node) => node.getBoundingClientRect().top - edge;
    const target = direction > 0 ? people.find((node) => place(node) > 24) : people.findLast((node) => place(node) < -8);
    if (!target && direction > 0) return this.goToEnd();
    this.#follower.stop();
    this.#follower.moveTo(target ? this.#view.scrollTop + place(target) - 12 : 0);
  }

  /** Hides calls without a result in the last turn, which the live part shows instead. */
  hideUnsettled(isHidden) {
    const start = this.#entries.findLastIndex(({ node }) => node.classList.contains('human'));
    this.#entries.forEach(({ node }, at) => node.classList.toggle('unsettled', isHidden && at > start));
  }

  /** Runs a change of the live part, which is followed if the end is. */
  grow(change) {
    change();
    this.#follower.keepEnd();
    this.#showArrow();
  }

  #showEnd() {
    this.#follower.toEnd();
    this.#toEnd.classList.remove('is-new');
    this.#showArrow();
  }

  /** Shows the way to the end, where that is out of view. */
  #showArrow() {
    const isHere = this.#follower.isFollowing || this.#follower.distance < FAR_FROM_END;
    this.#toEnd.hidden = isHere && !this.#moreAfter;
  }

  /** The user has scrolled, and let go. */
  #rested() {
    if (this.#follower.isFollowing) this.goToEnd();
    else this.#showArrow();
  }

  #find(seq) {
    return this.#list.querySelector(`#e${CSS.escape(seq)}`);
  }

  #replaceAll(page) {
    this.#entries = [];
    this.#list.replaceChildren();
    this.#moreBefore = page.more_before;
    this.#moreAfter = page.more_after;
    this.#first = page.first;
    this.#last = page.last;
    this.head = page.head;
    this.#put(page.entries);
    this.#space();
  }

  /** Inserts entries at their places. An entry that is already there is replaced if it changed. */
  #put(entries) {
    for (const entry of entries) {
      let at = this.#entries.findLastIndex((one) => one.seq <= entry.seq);
      const there = this.#entries[at]?.seq === entry.seq ? this.#entries[at] : null;
      if (there?.html === entry.html) continue;
      const node = this.#draw(entry);
      if (there) {
        keepUnfolded(there.node, node);
        there.node.replaceWith(node);
        Object.assign(there, { html: entry.html, node, isBare: !entry.text?.trim() });
        continue;
      }
      at += 1;
      this.#list.insertBefore(node, this.#entries[at]?.node ?? null);
      const speaker = entry.role === 'assistant' ? entry.speaker.name : null;
      this.#entries.splice(at, 0, { seq: entry.seq, html: entry.html, node, speaker, isBare: !entry.text?.trim() });
    }
    // Tool calls in a row need their speaker once.
    this.#entries.forEach(({ node, speaker, isBare }, at) => {
      node.classList.toggle('continued', isBare && speaker !== null && this.#entries[at - 1]?.speaker === speaker);
    });
  }

  #draw(entry) {
    const holder = document.createElement('div');
    fill(holder, entry.html);
    const node = holder.firstElementChild ?? holder;
    node.classList.add('entry');
    node.tabIndex = -1;
    if (entry.seq === this.#marked) node.classList.add('is-marked');
    if (entry.speaker?.type === 'ai') node.classList.add(this.#actions.voice(entry.speaker.name));
    decorate(node);
    const header = node.querySelector(':scope > header');
    header?.append(element('span', { class: 'actions' },
      entry.text && iconButton('copy', 'Copy message', (event) => copy(entry.text, event.currentTarget)),
      iconButton('fork', 'Fork from here', () => this.#actions.fork(this.#endOf(entry.seq)), { 'data-writes': '' })));
    return node;
  }

  /** Returns the last entry that is shown with this one: the results of its tool calls. */
  #endOf(seq) {
    const next = this.#entries.find((other) => other.seq > seq);
    return next ? next.seq - 1 : Math.max(seq, this.#last);
  }

  #clicked(event) {
    const anchor = event.target.closest('a.anchor');
    if (anchor) {
      event.preventDefault();
      this.#actions.open(Number(anchor.hash.slice(2)));
    }
  }

  #scrolled() {
    const { scrollTop, clientHeight } = this.#view;
    const above = this.#list.offsetTop;
    const below = this.#bottom.offsetTop;
    this.#showArrow();
    if (this.#isLoading) return;
    if (this.#moreBefore && scrollTop < above - clientHeight * 3) this.#jump(scrollTop / above, 1, this.#first);
    else if (this.#moreBefore && scrollTop < above + clientHeight * 2) this.#more('before');
    else if (this.#moreAfter && scrollTop > below + clientHeight * 2) {
      this.#jump((scrollTop - below) / this.#bottom.offsetHeight, this.#last, this.head);
    } else if (this.#moreAfter && scrollTop + clientHeight * 3 > below) this.#more('after');
  }

  /** Loads the entries next to the window. */
  async #more(side) {
    const edge = side === 'before' ? this.#first : this.#last;
    await this.#load({ [side]: edge, limit: PAGE }, (page) => this.#anchored(() => {
      this.head = Math.max(this.head, page.head);
      if (side === 'before') {
        this.#first = Math.min(this.#first, page.first);
        this.#moreBefore = page.more_before;
        this.#put(page.entries);
        this.#prune('bottom');
      } else {
        this.#last = Math.max(this.#last, page.last);
        this.#moreAfter = page.more_after;
        this.#put(page.entries.filter((entry) => entry.seq >= this.#first));
        this.#prune('top');
      }
    }));
  }

  /** Loads the entries that a spacer stands for, at a fraction of its height. */
  async #jump(fraction, from, to) {
    const seq = Math.max(1, Math.round(from + Math.min(1, Math.max(0, fraction)) * (to - from)));
    await this.#load({ around: seq, limit: PAGE }, (page) => {
      this.#replaceAll(page);
      const target = this.#entries.find((one) => one.seq >= seq) ?? this.#entries.at(-1);
      if (target) this.#follower.moveTo(target.node.offsetTop);
    });
  }

  async #load(position, show) {
    this.#isLoading = true;
    try {
      show(await this.#fetchPage(position));
    } catch {
      // The next scroll asks again.
    }
    this.#isLoading = false;
    requestAnimationFrame(() => this.#scrolled());
  }

  #prune(side) {
    const excess = this.#entries.length - MOST;
    if (excess <= 0) return;
    const gone = side === 'top' ? this.#entries.splice(0, excess) : this.#entries.splice(-excess);
    for (const { node } of gone) node.remove();
    if (side === 'top') {
      this.#moreBefore = true;
      this.#first = this.#entries[0].seq;
    } else {
      this.#moreAfter = true;
      this.#last = this.#entries.at(-1).seq;
    }
  }

  /** Changes the entries, and keeps the first visible one where it is. */
  #anchored(change) {
    const edge = this.#view.getBoundingClientRect().top;
    const place = (one) => one.node.getBoundingClientRect();
    const anchor = this.#entries.find((one) => place(one).bottom > edge);
    const before = anchor && place(anchor).top;
    change();
    this.#space();
    if (this.#follower.isFollowing && !this.#moreAfter) this.#follower.keepEnd();
    else if (anchor?.node.isConnected) this.#follower.moveTo(this.#view.scrollTop + place(anchor).top - before);
  }

  /** Gives the spacers the height that the entries outside of the window probably have. */
  #space() {
    const height = this.#list.offsetHeight;
    if (height && this.#last >= this.#first) this.#average = Math.max(8, height / (this.#last - this.#first + 1));
    const tall = (count) => `${Math.min(TALLEST_SPACER, Math.round(count * this.#average))}px`;
    this.#top.style.height = this.#moreBefore ? tall(this.#first - 1) : '0';
    this.#bottom.style.height = this.#moreAfter ? tall(this.head - this.#last) : '0';
    this.live.hidden = this.#moreAfter;
    this.#showArrow();
  }
}

/** Keeps folded parts open that were open. */
function keepUnfolded(old, node) {
  const parts = node.querySelectorAll('details');
  old.querySelectorAll('details').forEach((part, at) => {
    if (part.open && parts[at]) parts[at].open = true;
  });
}
