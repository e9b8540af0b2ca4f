import type { Mechanism, SharingMode } from '@atoll/gpu';

export interface NodeRef {
  readonly gpuaasId: string;
  readonly nodeName: string;
}

export interface DeviceRef extends NodeRef {
  readonly uuid: string;
}

/** The way a device is to be shared. */
export interface DeviceLayout {
  readonly mode: SharingMode;
  /** Of the target mode. */
  readonly mechanism: Mechanism;
  /** MPS clients, or turns; null with MIG. */
  readonly replicas: number | null;
  /** Counts the changes requested of this device: a report with another number belongs to another request. */
  readonly generation: number;
}

/** What a device says of itself. */
export interface DeviceReport {
  /** null where the device cannot say. */
  readonly mode: SharingMode | null;
  /** Of the last layout it was asked for. */
  readonly generation: number;
  /** `settled`: at rest in `mode`, whether that is the one asked for or not. */
  readonly state: 'settled' | 'switching' | 'failed';
  /** Why it failed, in words. */
  readonly reason: string | null;
  /** Leases whose processes hold memory on it now. */
  readonly holders: readonly string[];
}

/** The part of a device that a lease holds. */
export interface LeasedSlice extends DeviceRef {
  readonly leaseId: string;
  readonly profile: string;
  /** null for a turn. */
  readonly slotStart: number | null;
}

/** NVML's ids of MIG instances by lease (DCGM's label `GPU_I_ID`); empty without MIG. */
export type InstanceIds = ReadonlyMap<string, number>;

const missing: DeviceReport = {
  mode: null,
  generation: 0,
  state: 'failed',
  reason: 'The node does not have this device.',
  holders: [],
};

/**
 * The port to GPU nodes. A change of a device is asked for and then observed, as with NVIDIA's node labels
 * (`nvidia.com/mig.config` asks, `nvidia.com/mig.config.state` tells), so that whoever comes after a crash can go on by
 * looking. Each call throws `StepFailed`, permanent where another try makes no sense; is safe to repeat; and ends when
 * the signal is aborted.
 */
export abstract class NodeDriver {
  /**
   * Whether a device can be switched while slices of it are held: MPS shares give way to time slices and come back, MIG
   * instances do not.
   */
  abstract canSwitchUnderTenants(mechanism: Mechanism): boolean;

  /**
   * Finds the devices of a node and puts it into service. Workloads on these leases continue; any other user of a
   * device is ended.
   */
  abstract initialise(
    node: NodeRef,
    deviceUuids: readonly string[],
    leaseIds: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;

  /** As `initialise`, from nothing: the devices are as new. */
  abstract reset(node: NodeRef, deviceUuids: readonly string[], signal: AbortSignal): Promise<void>;

  /** Asks for a layout and returns at once. A generation that was asked for before changes nothing. */
  abstract request(device: DeviceRef, layout: DeviceLayout, signal: AbortSignal): Promise<void>;

  /** What these devices of a node say, by uuid; nothing of those that it does not have. */
  abstract observeAll(node: NodeRef, uuids: readonly string[], signal: AbortSignal): Promise<Map<string, DeviceReport>>;

  async observe(device: DeviceRef, signal: AbortSignal): Promise<DeviceReport> {
    const found = await this.observeAll(device, [device.uuid], signal);
    return found.get(device.uuid) ?? missing;
  }

  /** Makes sure that the node has what these leases hold. */
  abstract confirm(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<InstanceIds>;

  /** Gives what these leases hold to a workload. */
  abstract occupy(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<InstanceIds>;

  /** Ends the workloads on these leases. `observe` tells whether memory is still held. */
  abstract vacate(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<void>;
}
