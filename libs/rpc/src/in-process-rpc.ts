import type { BroadcastType, CallContext, Operation } from '@atoll/contracts';
import { after } from '@atoll/waiting';
import { remainingMs } from './call-context.js';
import type { InProcessBus } from './in-process-bus.js';
import { RpcClient } from './rpc-client.js';
import type { Readiness } from './rpc.js';
import type { Answer } from './rpc-server.js';
import { deadlineExceeded, unavailable } from './wire.js';

/** Calls within one process, alike in everything a caller can tell: JSON both ways, validation, errors, deadline. */
export class InProcessRpc extends RpcClient {
  constructor(private readonly bus: InProcessBus) {
    super();
  }

  protected override broadcast(name: string, json: string): void {
    this.bus.publish(name, json);
  }

  override listen<Payload extends object>(
    type: BroadcastType<Payload>,
    listener: (payload: Payload) => void,
  ): () => void {
    return this.bus.listen(type.name, (json) => this.deliver(type, listener, () => json));
  }

  override status(): Readiness {
    return { ready: true };
  }

  protected override request({ subject, service }: Operation, payload: string, context: CallContext): Promise<Answer> {
    const responder = this.bus.responder(subject);
    if (!responder) return Promise.resolve({ error: unavailable(service) });
    return new Promise((resolve) => {
      const timer = after(remainingMs(context), () => resolve({ error: deadlineExceeded() }));
      responder({ payload, context }, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
    });
  }
}
