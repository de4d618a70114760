// Service worker: keeps a copy of the shell (page, styles, modules), so that the installed app opens
// while the server is away. The server always comes first, so an old shell is never shown while it
// answers. Nothing that holds data is cached: `/ws`, `/login` and everything else pass by.

const SHELL = 'tertulia-shell';
/** Pause before the copy is renewed, so that the page loads first, in milliseconds. */
const RENEW_PAUSE = 3000;

/** Whether the server did not answer when a page was last opened. */
let isAway = false;
/** Whether this worker has renewed the copy. */
let isRenewed = false;

self.addEventListener('install', (event) => event.waitUntil(keepShell().then(() => self.skipWaiting())));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== self.location.origin) return;
  const isPage = pathname === '/' || pathname === '/new' || pathname === '/stats' || pathname.startsWith('/s/');
  if (request.mode === 'navigate' && isPage) event.respondWith(openPage(event));
  else if (isAway && pathname.startsWith('/assets/')) event.respondWith(networkFirst(request, pathname));
});

async function openPage(event) {
  try {
    const response = await fetch(event.request);
    isAway = false;
    if (!isRenewed) event.waitUntil(new Promise((resolve) => setTimeout(resolve, RENEW_PAUSE)).then(keepShell));
    isRenewed = true;
    return response;
  } catch {
    isAway = true;
    return networkFirst(event.request, '/');
  }
}

/** Fetches, and falls back to the copy under `key`. */
async function networkFirst(request, key) {
  try {
    return await fetch(request);
  } catch (error) {
    const shell = await caches.open(SHELL);
    const kept = await shell.match(key);
    if (kept) return kept;
    throw error;
  }
}

/** Keeps the page and every asset that it names. Without a login there is no page to keep. */
async function keepShell() {
  const response = await fetch('/').catch(() => null);
  if (!response?.ok || response.redirected) return;
  const shell = await caches.open(SHELL);
  const page = await response.clone().text();
  const names = new Set(page.match(/\/assets\/[\w./-]+/g));
  // The page last: what it names is there.
  await shell.addAll([...names]);
  await shell.put('/', response);
  for (const { url } of await shell.keys()) {
    const { pathname } = new URL(url);
    if (pathname !== '/' && !names.has(pathname)) await shell.delete(url);
  }
}
