// Login page: exchanges the one-time code of the address, or a code or token from the form, for a
// cookie that scripts cannot read and a secret that other servers cannot see.

import { keepSecret } from './store.js';

const form = document.getElementById('login');
const field = document.getElementById('secret');
const problem = document.getElementById('problem');

const query = new URLSearchParams(location.search);

/** Returns the address to go to afterwards. Only those of this server count, as the browser reads them. */
function next() {
  try {
    const { protocol, origin, pathname, href } = new URL(query.get('next') ?? '/', location.origin);
    const isHere = origin === location.origin && protocol === location.protocol;
    if (isHere && pathname !== '/login') return href;
  } catch {
    // No address at all.
  }
  return '/';
}

/** Keeps the login and goes on. */
async function finish(response) {
  const { secret } = await response.json();
  if (keepSecret(secret)) return location.replace(next());
  problem.textContent = 'This browser stores nothing for this page. Allow site data for it, and sign in with a new code.';
}

async function signIn(secret) {
  problem.textContent = '';
  form.toggleAttribute('aria-busy', true);
  try {
    const response = await fetch('/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(secret),
    });
    if (response.ok) return await finish(response);
    problem.textContent = await words(response, secret);
  } catch {
    problem.textContent = 'The server does not answer. Is tertulia web still running?';
  } finally {
    form.removeAttribute('aria-busy');
  }
  field.focus();
}

/** Says why the server refused. */
async function words(response, secret) {
  if (response.status === 429) {
    const seconds = response.headers.get('Retry-After') ?? 'a few';
    return `Too many attempts. Try again in ${seconds} seconds.`;
  }
  if (response.status === 401) {
    return secret.token
      ? 'This is no valid code or token: wrong, used, expired or revoked.'
      : 'This code is wrong, used or expired. Run tertulia web code for a new one.';
  }
  const body = await response.json().catch(() => null);
  return body?.error?.message ?? `The server refused: status ${response.status}.`;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const typed = field.value.trim();
  const secret = /#code=([^&\s]+)/.exec(typed)?.[1] ?? typed;
  if (secret) signIn({ code: secret, token: secret });
});

const code = new URLSearchParams(location.hash.slice(1)).get('code');
if (location.hash) history.replaceState(null, '', location.pathname + location.search);
if (code) {
  signIn({ code });
} else {
  if (query.has('again')) problem.textContent = 'This browser is no longer signed in here. Sign in again.';
  field.focus();
}
