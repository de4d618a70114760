// Login page: exchanges the one-time code of the address, or a code or token from the form, for a
// cookie that scripts cannot read.

const form = document.getElementById('login');
const field = document.getElementById('secret');
const problem = document.getElementById('problem');

/** Returns the path to go to afterwards. Only paths of this server count. */
function next() {
  const path = new URLSearchParams(location.search).get('next') ?? '/';
  return /^\/(?![/\\])/.test(path) && !path.startsWith('/login') ? path : '/';
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
    if (response.ok) return location.replace(next());
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
if (code) signIn({ code });
else field.focus();
