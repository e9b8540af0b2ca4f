import type { Capabilities, ClusterDriver } from '@atoll/cluster';

/** What runs the pods of each GPU service. */
export abstract class Clusters {
  /**
   * Throws a `ClusterError` where the cluster cannot be used now: one that hangs keeps its callers waiting for 10 s at
   * most, and no others.
   */
  abstract driverOf(gpuaasId: string): Promise<ClusterDriver>;
  /** What its driver can do, known without asking it. */
  abstract capabilitiesOf(gpuaasId: string): Promise<Capabilities>;
  /** Throws `unavailable` where the last check found that the cluster does not answer: it takes nothing new. */
  abstract requireReachable(gpuaasId: string): Promise<void>;
  /** Under which the exposed services of this GPU service are reached. */
  abstract publicHostOf(gpuaasId: string): Promise<string>;
  /**
   * Returns once what is known of the cluster is at least as new as `setting`, so that nothing starts on a former one.
   */
  abstract requireSetting(gpuaasId: string, setting: number): Promise<void>;
}
