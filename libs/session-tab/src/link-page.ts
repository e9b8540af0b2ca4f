import { browser } from './browser.js';

/** The script of the page at `/link`: sets a password by the token behind `#`, which no server sees in an address. */
const element = (id: string) => {
  const found = browser.document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
};

const token = browser.location.hash.slice(1);
// Neither in the history nor on a screen that is shared.
browser.history.replaceState(null, '', browser.location.pathname);

async function use(): Promise<void> {
  const name = element('name').value;
  const body = JSON.stringify({ token, password: element('password').value, ...(name !== '' && { name }) });
  const response = await fetch('/api/user/link', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const answer = (await response.json()) as { email?: string; detail?: string };
  element('message').textContent = response.ok ? `Done. Log in as ${answer.email}.` : (answer.detail ?? '');
  element('log-in').hidden = !response.ok;
}

element('form').addEventListener('submit', (event) => {
  event.preventDefault();
  use().catch(() => (element('message').textContent = 'The platform cannot be reached at the moment.'));
});
