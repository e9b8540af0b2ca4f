import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import type { CallContext, Operation } from '@atoll/contracts';
import type { Signer } from './signature.js';

const contextHeader = 'Atoll-Context';
/** Of requests, broadcasts, answers and events alike. */
export const signatureHeader = 'Atoll-Signature';

/** The signature of a message, unverified; empty if it has none. */
export function signatureOf(message: Msg): string {
  return message.headers?.get(signatureHeader) ?? '';
}

/** A message whose sender holds a secret of the bus. */
export interface Opened {
  context: CallContext;
  payload: string;
  signature: string;
}

/** A request as it travels: its headers, and the signature among them, to which the answer is bound. */
export interface Sealed {
  headers: MsgHdrs;
  signature: string;
}

/**
 * Subject of the requests for an operation that are signed with this secret: who holds another one is neither asked nor
 * heard.
 */
export function subjectOf({ subject }: Pick<Operation, 'subject'>, fingerprint: string): string {
  return `${subject}.${fingerprint}`;
}

/** Signs a request: the signature covers its subject, its reply inbox, the context and the payload. */
export function seal(signer: Signer, subject: string, reply: string, context: CallContext, payload: string): Sealed {
  const contextJson = JSON.stringify(context);
  const signature = signer.sign({ subject, reply, context: contextJson, payload });
  const sealed = headers();
  sealed.set(contextHeader, contextJson);
  sealed.set(signatureHeader, signature);
  return { headers: sealed, signature };
}

/** Reads a request; undefined where its signature is missing or does not match. Its deadline may have passed. */
export function open(signer: Signer, message: Msg): Opened | undefined {
  const context = message.headers?.get(contextHeader) ?? '';
  const signature = signatureOf(message);
  const payload = message.string();
  if (!signer.verify({ subject: message.subject, reply: message.reply ?? '', context, payload }, signature))
    return undefined;
  return { context: JSON.parse(context) as CallContext, payload, signature };
}
