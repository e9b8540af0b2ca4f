import { createInbox } from '@nats-io/transport-node';

/**
 * Every inbox of the platform is `_INBOX.<reader>.<id>.<writer>.<token>`: the service that reads it, a random id of its
 * connection, the one service that may write to it, and what tells its messages apart. NATS' permissions can therefore
 * say for each service which inboxes it reads (`_INBOX.<own>.>`) and to which it writes (`_INBOX.*.*.<own>.*`).
 */
const root = '_INBOX';
const name = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/**
 * Prefix of the inboxes that a service reads, also those that the NATS client makes by itself. Throws where the name is
 * no token.
 */
export function inboxPrefix(reader: string): string {
  if (!name.test(reader))
    throw new Error(`"${reader}" is not a valid service name: use lower-case letters, digits and hyphens.`);
  return `${root}.${reader}`;
}

/** A new inbox of this reader, as yet without writer and token. */
export function newInbox(reader: string): string {
  return createInbox(inboxPrefix(reader));
}

/**
 * Whether a subject is an inbox: nothing else is ever replied to, since JetStream and others act on what reaches their
 * subjects.
 */
export function isInbox(subject: string): boolean {
  return subject.startsWith(`${root}.`);
}

/** The reader of an inbox that has neither writer nor token yet; undefined where the subject is no such inbox. */
export function readerOfNewInbox(inbox: string | undefined): string | undefined {
  return /^_INBOX\.([a-z0-9-]{1,64})\.[A-Za-z0-9]{1,64}$/.exec(inbox ?? '')?.[1];
}

/** The service that reads an inbox. */
export function readerOf(inbox: string): string {
  return inbox.split('.', 2)[1] ?? '';
}

/** The service that may write to an inbox. */
export function writerOf(inbox: string): string {
  return inbox.split('.', 4)[3] ?? '';
}
