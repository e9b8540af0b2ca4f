import { expect, it } from '@jest/globals';
import type { Msg } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { open, seal } from './nats-envelope.js';
import { Signer } from './signature.js';
import { specSecret } from './transports-fixture.js';

const signer = new Signer(specSecret);

function opened(context: object): CallContext | undefined {
  const { headers } = seal(signer, 'probe.ask', '', context as CallContext, '{}');
  return open(signer, { subject: 'probe.ask', reply: '', headers, string: () => '{}' } as Msg)?.context;
}

it('reads a caller as it was sent', () => {
  const context = {
    requestId: 'r',
    deadlineAtMs: 1,
    caller: { kind: 'user', userId: 'u', credential: { kind: 'session', id: 's' } },
  };
  expect(opened(context)).toEqual(context);
});
