import { Module, type DynamicModule } from '@nestjs/common';
import type { InProcessBus } from './in-process-bus.js';
import { InProcessRpc } from './in-process-rpc.js';
import { NatsLink, type NatsLinkOptions } from './nats-link.js';
import { NatsRpc, type NatsRpcOptions } from './nats-rpc.js';
import { Rpc } from './rpc.js';
import { Signer, type Secrets } from './signature.js';

/** A link of its own, opened at boot and closed at shutdown; or one that the process shares and closes itself. */
export type RpcNatsOptions = { secret: Secrets } & Pick<NatsRpcOptions, 'onNobody'> &
  (NatsLinkOptions | { link: NatsLink });

/** Gives every module of an application its `Rpc`. */
@Module({})
export class RpcModule {
  /** Over NATS. The link is injectable too, as `NatsLink`. */
  static forNats(options: RpcNatsOptions): DynamicModule {
    const link =
      'link' in options
        ? { provide: NatsLink, useValue: options.link }
        : { provide: NatsLink, useFactory: () => NatsLink.open(options) };
    const rpc = {
      provide: Rpc,
      inject: [NatsLink],
      useFactory: async (opened: NatsLink): Promise<NatsRpc> => {
        const { onNobody } = options;
        const client = new NatsRpc(opened, new Signer(options.secret), {
          ownsLink: !('link' in options),
          ...(onNobody && { onNobody }),
        });
        await opened.settled();
        return client;
      },
    };
    return { module: RpcModule, global: true, providers: [link, rpc], exports: [Rpc, NatsLink] };
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
