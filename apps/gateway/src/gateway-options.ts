import type { DynamicModule } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { parseAddressRange, type AddressRange } from '@atoll/contracts';
import { defaultPublicUrl, type ReadinessCheck } from '@atoll/service';
import { defaultLimits, type Limits } from './rate-limits/limits.js';

export interface GatewayOptions {
  /** `RpcModule.forNats(…)` or `RpcModule.forMemory(…)`. */
  rpc: DynamicModule;
  /** Under which API keys are digested; the same as the teams service's. */
  keyPepper: string;
  logger: Logger;
  /** What `/metrics` shows; the gateway adds its own figures. */
  metrics: Registry;
  /** Addresses and CIDRs whose `X-Forwarded-For` is trusted. Default none. */
  trustedProxies?: readonly string[];
  /** Public URL of the platform: the origin whose pages may log in. Default `http://localhost:3000`. */
  publicUrl?: string;
  /** `off` for benchmarks and tests. */
  limits?: Partial<Limits> | 'off';
  /** Where the buckets are: in this process, or in NATS, for all replicas together. */
  limitStore?: LimitStore;
  /** How long a request may take; 5 s unless given. */
  deadlineMs?: number;
  /**
   * How long requests are still taken at shutdown while `/readyz` says no, for a load balancer to notice; 0 unless
   * given.
   */
  drainDelayMs?: number;
  /** What `/readyz` asks besides the bus. */
  readinessChecks?: readonly ReadinessCheck[];
  /**
   * Folder of the built console; default: beside the built gateway. Without a console, `/` redirects to the
   * documentation.
   */
  consoleFolder?: string;
  /** Epoch milliseconds, for key expiry, cache and limits. */
  now?: () => number;
}

export type LimitStore = 'memory' | 'nats';

/** The options with their defaults filled in; injectable. */
export class GatewaySettings {
  readonly keyPepper: string;
  readonly logger: Logger;
  readonly metrics: Registry;
  readonly publicUrl: string;
  readonly trustedProxies: readonly AddressRange[];
  readonly limits: Limits | null;
  readonly deadlineMs: number;
  readonly drainDelayMs: number;
  readonly readinessChecks: readonly ReadinessCheck[];
  readonly now: () => number;

  constructor(options: GatewayOptions) {
    const { limits = {}, trustedProxies = [] } = options;
    this.keyPepper = options.keyPepper;
    this.logger = options.logger;
    this.metrics = options.metrics;
    this.publicUrl = options.publicUrl ?? defaultPublicUrl;
    this.trustedProxies = trustedProxies.map(toRange);
    this.limits = limits === 'off' ? null : { ...defaultLimits, ...limits };
    this.deadlineMs = options.deadlineMs ?? 5_000;
    this.drainDelayMs = options.drainDelayMs ?? 0;
    this.readinessChecks = options.readinessChecks ?? [];
    this.now = options.now ?? Date.now;
  }
}

function toRange(text: string): AddressRange {
  const range = parseAddressRange(text);
  if (!range) throw new Error(`A trusted proxy must be an IP address or a CIDR, not: ${text}`);
  return range;
}
