import { signatureHeader, type Signer } from '@atoll/rpc';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import type { DomainEvent } from './courier.js';
import { decodeEvent, encodeEvent, subjectOf } from './event-message.js';

/** An event as it travels. The signature covers the publisher, the subject and the text. */
export interface SealedEvent {
  readonly subject: string;
  readonly text: string;
  readonly headers: MsgHdrs;
}

/** What is read of a message of the stream. */
export interface EventMessage {
  readonly subject: string;
  readonly headers?: MsgHdrs | undefined;
  string(): string;
}

/** Signs an event in the name of the service that publishes it. */
export function sealEvent(signer: Signer, publisher: string, event: DomainEvent): SealedEvent {
  const subject = subjectOf(event.name);
  const text = encodeEvent({ ...event, publisher });
  const sealed = headers();
  sealed.set(signatureHeader, signer.signEvent({ publisher, subject }, text));
  return { subject, text, headers: sealed };
}

/**
 * Reads an event. `forged` where its publisher did not sign it, `unreadable` where the message is no event. Whether
 * that publisher may publish such events, only the event's type knows. An unsigned event is read, without a publisher,
 * where `mayBeUnsigned`.
 */
export function openEvent(
  signer: Signer,
  message: EventMessage,
  mayBeUnsigned: boolean,
): DomainEvent | 'forged' | 'unreadable' {
  const text = message.string();
  const event = decodeEvent(message.subject, text);
  if (!event) return 'unreadable';
  const signature = message.headers?.get(signatureHeader) ?? '';
  const { publisher, ...unsigned } = event;
  if (signature === '') return mayBeUnsigned ? unsigned : 'forged';
  if (publisher === undefined) return 'forged';
  return signer.verifyEvent({ publisher, subject: message.subject }, text, signature) ? event : 'forged';
}
