import type { DynamicModule } from '@nestjs/common';
import { InProcessCourier, JetStreamCourier, type Courier, type JetStreamSettings } from '@atoll/events';
import {
  InProcessBus,
  InProcessStrategy,
  NatsLink,
  NatsStrategy,
  parseSecrets,
  RpcModule,
  SecretCheck,
  type RpcServer,
  type RpcServerOptions,
} from '@atoll/rpc';
import type { ReadinessCheck } from './health.js';

/** How the services of a deployment reach each other: everything that differs between one process and many. */
export interface Transport {
  /** Gives an application its `Rpc`. */
  readonly rpc: DynamicModule;
  /** Carries events between services. */
  readonly courier: Courier;
  /** What a service listens on. */
  server(options: RpcServerOptions): RpcServer;
  readonly checks: readonly ReadinessCheck[];
  /** After every application that uses it has been closed. */
  close(): Promise<void>;
}

/** All services, those named, in this process. */
export function inProcessTransport(services: readonly string[]): Transport {
  const bus = new InProcessBus();
  return {
    rpc: RpcModule.forMemory({ bus }),
    courier: new InProcessCourier({ services }),
    server: (options) => new InProcessStrategy({ ...options, bus }),
    checks: [],
    close: () => Promise.resolve(),
  };
}

export interface NatsTransportOptions {
  /** Comma-separated. */
  servers: string;
  name: string;
  /**
   * Comma-separated: of several secrets the first signs and all verify, so that they can be changed one process after
   * the other.
   */
  secrets: string;
  /** Limits of the event stream. */
  stream?: Pick<JetStreamSettings, 'maxBytes' | 'replicas'>;
}

/** One service in this process, the others behind NATS, over the one connection of this process. */
export function natsTransport({ servers, name, secrets, stream = {} }: NatsTransportOptions): Transport {
  const secret = parseSecrets(secrets);
  const link = NatsLink.open({ servers: servers.split(','), name });
  const secretCheck = new SecretCheck(link, secret);
  return {
    rpc: RpcModule.forNats({ link, secret, onNobody: () => secretCheck.ask() }),
    courier: new JetStreamCourier({ link, secret, ...stream }),
    server: (serverOptions) => new NatsStrategy({ ...serverOptions, link, secret }),
    checks: [
      { name: 'nats', check: () => link.status().reason ?? null },
      { name: 'bus secret', check: () => secretCheck.reason() },
    ],
    close: async () => {
      await secretCheck.close();
      await link.close();
    },
  };
}
