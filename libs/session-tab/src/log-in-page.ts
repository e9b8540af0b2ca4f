import { browser, type PageElement } from './browser.js';
import { NoSession, SessionTab, type LogInOutcome, type TabState } from './session-tab.js';

/** The script of the page at `/login`: log in, see who is logged in, log out. The console takes its place. */
const element = (id: string): PageElement => {
  const found = browser.document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
};

const sentences = {
  none: '',
  logged_out: 'You are logged out.',
  ended: 'Your session has ended. Log in again.',
  other_user: 'Somebody else has logged in with this browser.',
};

let ticket = '';

function show(state: TabState): void {
  const isIn = state.kind === 'in';
  element('out').hidden = isIn;
  element('in').hidden = !isIn;
  element('second').hidden = true;
  element('who').textContent = isIn ? `${state.user.name} (${state.user.email})` : '';
  say(isIn ? '' : sentences[state.reason]);
}

function say(text: string): void {
  element('message').textContent = text;
}

function take(outcome: LogInOutcome): void {
  if (outcome.kind === 'refused') say(outcome.message);
  if (outcome.kind !== 'second_factor') return;
  ticket = outcome.ticket;
  element('second').hidden = false;
  say('Enter a code of your authenticator, or a recovery code.');
}

/** What goes wrong is said; the end of a session was said already. */
function on(id: string, event: string, work: () => Promise<void>): void {
  element(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    work().catch((error: unknown) => {
      if (!(error instanceof NoSession)) say(error instanceof Error ? error.message : String(error));
    });
  });
}

const tab = new SessionTab({ onChange: show });

on('log-in', 'submit', async () => take(await tab.logIn(element('email').value, element('password').value)));
on('second', 'submit', async () => take(await tab.logInWithCode(ticket, element('code').value)));
on('passkey', 'click', async () => take(await tab.logInWithPasskey()));
on('log-out', 'click', () => tab.logOut());
on('add-passkey', 'click', async () => {
  const { ok, status } = await tab.addPasskey('This device');
  say(ok ? 'The passkey was added.' : `The passkey was not added (${status}).`);
});
on('check', 'click', async () => say(`The server knows you: ${(await tab.fetch('/user/profile')).status}.`));
/** A link for each provider: it leads there and back, and sets the cookie. */
async function showProviders(): Promise<void> {
  const { data } = (await (await fetch('/api/user/sso')).json()) as { data: { id: string; name: string }[] };
  for (const { id, name } of data) {
    const link = browser.document.createElement('a');
    link.href = `/api/user/sso/${id}`;
    link.textContent = `Log in with ${name}`;
    element('providers').append(link);
  }
}

void showProviders().catch(() => undefined);
void tab.start().catch(() => say('The platform cannot be reached at the moment.'));
