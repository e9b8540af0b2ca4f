import type { ConnectionPod } from '@atoll/contracts/gpuaas';

/** Where it is known how pods are reached: the service that runs them. */
export abstract class ConnectionSource {
  /**
   * The pods of each of these subscriptions; one without is left out. Throws where it cannot be found out, and when the
   * signal is aborted.
   */
  abstract read(
    teamId: string,
    subscriptionIds: readonly string[],
    signal: AbortSignal,
  ): Promise<Map<string, ConnectionPod[]>>;
}
