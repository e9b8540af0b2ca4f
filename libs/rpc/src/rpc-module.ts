import { Module, type DynamicModule } from '@nestjs/common';
import type { InProcessBus } from './in-process-bus.js';
import { InProcessRpc } from './in-process-rpc.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { Rpc } from './rpc.js';
import { Signer, type Secrets } from './signature.js';

export interface RpcNatsOptions {
  /** The caller opens and closes it. */
  link: NatsLink;
  secret: Secrets;
  /** Called when a service has no responders: it may be down, or have another secret. */
  onNobody?: () => void;
}

/** Gives every module of an application its `Rpc`. */
@Module({})
export class RpcModule {
  /** Over NATS. The link is injectable too, as `NatsLink`. */
  static forNats({ link, secret, onNobody }: RpcNatsOptions): DynamicModule {
    const rpc = {
      provide: Rpc,
      useFactory: async (): Promise<NatsRpc> => {
        const client = new NatsRpc(link, new Signer(secret), onNobody);
        await link.settled();
        return client;
      },
    };
    return {
      module: RpcModule,
      global: true,
      providers: [{ provide: NatsLink, useValue: link }, rpc],
      exports: [Rpc, NatsLink],
    };
  }

  /** Within one process: the services meet on `bus`. Nothing is signed, since nothing leaves the process. */
  static forMemory({ bus }: { bus: InProcessBus }): DynamicModule {
    return {
      module: RpcModule,
      global: true,
      providers: [{ provide: Rpc, useFactory: () => new InProcessRpc(bus) }],
      exports: [Rpc],
    };
  }
}
