// Service worker: keeps a copy of the shell (page, styles, modules), so that the installed app opens
// while the server is away. The network always comes first, so an old shell is never shown while the
// server answers. Nothing that holds data is cached: `/ws`, `/login` and everything else pass by.

const SHELL = 'tertulia-shell';

self.addEventListener('install', (event) => event.waitUntil(keepShell().then(() => self.skipWaiting())));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== self.location.origin) return;
  const isPage = request.mode === 'navigate'
    && (pathname === '/' || pathname === '/new' || pathname === '/stats' || pathname.startsWith('/s/'));
  if (isPage) event.respondWith(networkFirst(request, '/'));
  else if (pathname.startsWith('/assets/')) event.respondWith(networkFirst(request, pathname));
});

/** Fetches, and falls back to the copy under `key`. Redirects to the login page are not kept. */
async function networkFirst(request, key) {
  const shell = await caches.open(SHELL);
  try {
    const response = await fetch(request);
    if (response.ok && response.type === 'basic') await shell.put(key, response.clone());
    return response;
  } catch (error) {
    const kept = await shell.match(key);
    if (kept) return kept;
    throw error;
  }
}

/** Keeps the page and every asset that it names. */
async function keepShell() {
  const shell = await caches.open(SHELL);
  const response = await fetch('/');
  if (!response.ok || response.redirected) return;
  const page = await response.clone().text();
  await shell.put('/', response);
  await shell.addAll([...new Set(page.match(/\/assets\/[\w.-]+/g))]);
}
