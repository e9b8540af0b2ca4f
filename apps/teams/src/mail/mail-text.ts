import type { Notice } from './mail-box.js';
import type { MailEntity } from '../model/mail.entity.js';

export interface MailText {
  subject: string;
  text: string;
  html: string;
}

const happened: Record<Notice, string> = {
  new_device: 'Somebody logged in to your account from a network that is new to it.',
  log_ins_slowed:
    'Somebody tried to log in to your account too often, with a wrong password or code. Further tries from there are slowed.',
  password_changed: 'The password of your account was changed.',
  session_stolen:
    'The cookie of one of your sessions was used twice, which can mean that it was copied. The session has ended.',
  factor_added: 'A passkey or an authenticator was added to your account.',
  factor_removed: 'A passkey or an authenticator was removed from your account.',
};

/** What mail programs make a link of: to whoever reads it, one of the platform's. */
const linkLike = /:\/\/|\.\p{L}{2}/u;

/**
 * As an invitation names a team, to somebody who may not know it. The quotes are beyond ASCII, so that the whole
 * subject is encoded: encoded words (RFC 2047) in a name would be decoded by who reads it.
 */
function shownTeam(name: string | undefined): string {
  return name === undefined || linkLike.test(name) ? 'a team' : `the team “${name}”`;
}

interface Link {
  readonly url: string;
  readonly expiresAt: Date;
}

/** A mail may come late, so that "within 24 hours" would promise too much. */
function useOnce({ expiresAt }: Link): string {
  return `once, until ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC:`;
}

/** The text of a mail, plain and as HTML. `link`: the one-time link of its kind. `hasProviders`: of single sign-on. */
export function mailText(
  { kind, data }: Pick<MailEntity, 'kind' | 'data'>,
  { publicUrl, hasProviders }: { publicUrl: string; hasProviders: boolean },
  link: Link | null,
): MailText {
  if (kind === 'invitation' && link) {
    const team = shownTeam(data.team_name);
    const lines = [
      `You are invited to join ${team} on Atoll at ${publicUrl}.`,
      `The link can be used ${useOnce(link)}`,
      link.url,
    ];
    if (hasProviders)
      lines.push(
        `If you can log in by single sign-on, you need neither the link nor a password: log in at ${publicUrl}, and accept there.`,
      );
    return compose(`Join ${team} on Atoll`, lines);
  }
  if (kind === 'reset' && link) {
    const asked = `Somebody asked for a new password for your account at ${publicUrl}.`;
    const lines = [
      asked,
      `If it was you, set one by this link. It can be used ${useOnce(link)}`,
      link.url,
      'If you did not ask for it, do nothing.',
    ];
    return compose('Set a new password', lines);
  }
  const where = [data.at && `When: ${data.at}`, data.address && `Address: ${data.address}`];
  const advice = `If it was not you, set a new password at ${publicUrl}, which ends every session.`;
  return compose('Your Atoll account', [
    happened[data.event as Notice],
    ...where.filter((line) => typeof line === 'string' && line !== ''),
    advice,
  ]);
}

function compose(subject: string, lines: (string | undefined)[]): MailText {
  const kept = lines.filter((line) => line !== undefined);
  const html = kept.map(
    (line) => `<p>${/^https?:\S+$/.test(line) ? `<a href="${escaped(line)}">${escaped(line)}</a>` : escaped(line)}</p>`,
  );
  return {
    subject,
    text: `${kept.join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><body>${html.join('')}</body></html>`,
  };
}

/** Names come from strangers. */
function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
