import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import type { Signer } from './signature.js';
import { deadlineExceeded } from './wire.js';

const contextHeader = 'Atoll-Context';
const signatureHeader = 'Atoll-Signature';

/** A message whose sender holds a secret of the bus. */
export interface Opened {
  context: CallContext;
  payload: string;
  signature: string;
}

/** The headers of a request: the context and, over it and all the rest, the signature. */
export function seal(signer: Signer, subject: string, reply: string, context: CallContext, payload: string): MsgHdrs {
  const contextJson = JSON.stringify(context);
  const sealed = headers();
  sealed.set(contextHeader, contextJson);
  sealed.set(signatureHeader, signer.sign({ subject, reply, context: contextJson, payload }));
  return sealed;
}

/** Throws `unauthenticated` where the signature is missing or does not match, `deadline_exceeded` after the deadline. */
export function open(signer: Signer, message: Msg): Opened {
  const context = message.headers?.get(contextHeader) ?? '';
  const signature = message.headers?.get(signatureHeader) ?? '';
  const payload = message.string();
  if (!signer.verify({ subject: message.subject, reply: message.reply ?? '', context, payload }, signature)) {
    throw new AppError('unauthenticated', 'The request is not signed by this platform.');
  }
  const verified = JSON.parse(context) as CallContext;
  if (verified.deadlineAtMs <= Date.now()) throw deadlineExceeded();
  return { context: verified, payload, signature };
}
