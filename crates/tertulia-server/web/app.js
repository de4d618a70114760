// The page as a whole: starts the connection, shows what the address names, and keeps the frame
// (banner, title, height above a soft keyboard) right.

import { Connection, signInAgain } from './connection.js';
import { ICON, announce, complain, element, toast } from './dom.js';
import { listenToKeys } from './keys.js';
import { SessionList } from './list.js';
import { newSession } from './new.js';
import { SessionView } from './session_view.js';
import { statistics } from './stats.js';
import { Outbox, secret } from './store.js';

/** Pause between two looks at what is live, while the page is visible, in milliseconds. */
const LIVE_PAUSE = 5000;
/** Time in which a busy server answers that, in milliseconds. */
const LIVE_TIME = 10_000;
/** Time after which a lost connection is shown, in milliseconds. */
const BANNER_PAUSE = 400;

const main = document.getElementById('main');
const banner = document.getElementById('banner');

const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
const connection = new Connection(`${scheme}//${location.host}/ws`);

/** What the parts of the page share. */
const app = {
  connection,
  outbox: new Outbox(connection),
  list: null,
  /** What the main pane shows: it has a `node` and `close()`. */
  view: null,
  /** False if this login may only read. */
  mayWrite: true,
  /** Sessions that this page has created, which may have no entries yet. */
  created: new Set(),

  go(path) {
    if (path !== location.pathname) history.pushState(null, '', path);
    show();
  },

  replace(path) {
    history.replaceState(null, '', path);
    show();
  },

  /** Shows the list, where only one pane fits. */
  showList() {
    if (getComputedStyle(document.getElementById('list')).display === 'none') app.go('/');
  },

  showTitle(words) {
    document.title = words ? `${words} · tertulia` : 'tertulia';
  },

  /** Ends the login of this browser. Drafts are private, so they go with it. */
  async signOut() {
    await fetch('/logout', { method: 'POST', headers: { 'Tertulia-Secret': secret() } }).catch(() => null);
    app.view?.close?.();
    localStorage.clear();
    location.assign('/login');
  },

  async undo() {
    try {
      const { text, session_id: id } = await connection.request('session_undo', {}, { again: false });
      toast(text, id ? { action: { label: 'Open', run: () => app.go(`/s/${id}`) } } : {});
      app.list.refresh();
    } catch (error) {
      complain(error, app.undo);
    }
  },
};

/** Shows what the address names. */
async function show() {
  const [, kind, id, seq] = location.pathname.split('/');
  const sessionId = kind === 's' && id ? decodeURIComponent(id) : '';
  app.list.showCurrent(sessionId);
  document.body.dataset.view = kind ? 'session' : 'list';
  if (sessionId && app.view?.id === sessionId) {
    if (seq) app.view.transcript.goTo(Number(seq)).catch(complain);
    return;
  }
  app.view?.close?.();
  app.view = null;
  app.showTitle('');
  if (sessionId) {
    app.view = new SessionView(app, sessionId);
    main.replaceChildren(app.view.node);
    await app.view.open(Number(seq) || 0);
    return;
  }
  const build = { new: newSession, stats: statistics }[kind];
  if (!build) return main.replaceChildren(welcome());
  app.showTitle(kind === 'new' ? 'New session' : 'Statistics');
  if (kind === 'new' && !app.mayWrite) return app.replace('/');
  app.view = build(app);
  main.replaceChildren(app.view.node);
  app.view.node.querySelector('select')?.focus();
}

function welcome() {
  return element('div', { class: 'empty' }, element('img', { src: ICON, alt: '', width: '72', height: '72' }),
    element('h2', {}, 'Choose a session, or begin a new one'),
    element('p', { class: 'dim hints' }, element('kbd', {}, 'n'), ' new  ', element('kbd', {}, '/'), ' search  ', element('kbd', {}, '?'), ' all keys'));
}

/** Links to pages of this server are followed without loading the page again. */
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="/"]');
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  app.go(link.pathname);
});

let bannerTimer;
let wasLost = false;

connection.addEventListener('state', () => {
  clearTimeout(bannerTimer);
  if (connection.state === 'open') {
    // The code of the address is of no use to a browser that is signed in.
    if (location.hash.startsWith('#code=')) history.replaceState(null, '', location.pathname);
    if (wasLost) {
      showBanner('Reconnected.', 'good');
      bannerTimer = setTimeout(() => { banner.hidden = true; }, 2000);
    } else {
      banner.hidden = true;
    }
    wasLost = false;
    lookAtLive();
    app.list.refresh();
  } else {
    bannerTimer = setTimeout(() => {
      wasLost = true;
      showBanner('Connection lost. Trying again…', 'bad');
    }, BANNER_PAUSE);
  }
});

function showBanner(words, tone) {
  banner.textContent = words;
  banner.className = tone;
  banner.hidden = false;
  announce(words);
}

/** A message of a session that is not shown is known to be said. */
app.outbox.addEventListener('duplicate', ({ detail }) => {
  if (app.view?.id !== detail.session) app.outbox.remove(detail.client_id);
});

let version;

/** Asks what is live, as long as the page is visible: this also finds dead connections. */
async function lookAtLive() {
  if (document.visibilityState !== 'visible' || connection.state !== 'open') return;
  const reply = await connection.verify(LIVE_TIME);
  if (!reply) return;
  const { access, server, talks } = reply;
  app.mayWrite = access !== 'read_only';
  document.body.dataset.access = access;
  if (!app.mayWrite && location.pathname === '/new') app.replace('/');
  app.list.showLive(talks);
  if (version && version !== server.version) {
    toast('The server has a new version.', { action: { label: 'Reload', run: () => location.reload() } });
  }
  version = server.version;
}

setInterval(lookAtLive, LIVE_PAUSE);

/** Keeps the input above the soft keyboard. */
function fitHeight() {
  const { height, offsetTop, scale } = window.visualViewport;
  if (scale > 1.01) return;
  document.documentElement.style.setProperty('--height', `${height}px`);
  if (offsetTop) window.scrollTo(0, 0);
}

window.visualViewport?.addEventListener('resize', fitHeight);
window.visualViewport?.addEventListener('scroll', fitHeight);
window.addEventListener('popstate', show);

app.list = new SessionList(app, document.getElementById('list'));
listenToKeys(app);
if (secret()) connection.start();
else signInAgain();
show();
navigator.serviceWorker?.register('/sw.js').catch(() => {});
