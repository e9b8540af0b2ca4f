import { setTimeout as delay } from 'node:timers/promises';
import type { Operation } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { InProcessBus } from './in-process-bus.js';
import { InProcessRpc } from './in-process-rpc.js';
import { InProcessStrategy } from './in-process-strategy.js';
import { subjectOf } from './nats-envelope.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import type { RpcServer, RpcServerOptions } from './rpc-server.js';
import type { Rpc } from './rpc.js';
import { Signer } from './signature.js';

/** One transport under test: what its specs show of it holds for each of them. */
export interface Transport {
  rpc: Rpc;
  strategy(options: RpcServerOptions): RpcServer;
  close(): Promise<void>;
}

export const specSecret = 'a secret of the specs';

/** Where requests signed with the secret of the specs are sent. */
export function specSubject(operation: Operation): string {
  return subjectOf(operation, new Signer(specSecret).fingerprints[0]);
}

export function overNats(url: string): Transport {
  const link = NatsLink.open({ servers: url });
  return {
    rpc: new NatsRpc(link, new Signer(specSecret)),
    strategy: (options) => new NatsStrategy({ ...options, link, secret: specSecret }),
    close: () => link.close(),
  };
}

export function inProcess(): Transport {
  const bus = new InProcessBus();
  return {
    rpc: new InProcessRpc(bus),
    strategy: (options) => new InProcessStrategy({ ...options, bus }),
    close: () => Promise.resolve(),
  };
}

/** The AppError that a call ends with. */
export async function errorOf(call: Promise<unknown>): Promise<AppError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof AppError) return error;
  throw new Error(`Expected an AppError, not ${String(error)}`);
}

/** Waits until something holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5);
}
