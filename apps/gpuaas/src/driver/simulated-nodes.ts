import { Statements } from '@atoll/database';
import type { Mechanism, SharingMode } from '@atoll/gpu';
import { Injectable } from '@nestjs/common';
import { GpuaasSettings } from '../gpuaas-settings.js';
import {
  NodeDriver,
  type DeviceLayout,
  type DeviceRef,
  type DeviceReport,
  type LeasedSlice,
  type InstanceIds,
  type NodeRef,
} from './node-driver.js';
import { SimulatedFaults } from './simulated-faults.js';

const slowSwitchMs = 3_000;

interface DeviceRow {
  uuid: string;
  mode: SharingMode;
  generation: number;
  is_switching: boolean;
  failure: string | null;
  holders: string[];
}

/** Nodes without GPUs, for a platform on one machine and for specs. What goes wrong with them: `SimulatedFaults`. */
@Injectable()
export class SimulatedNodes extends NodeDriver {
  constructor(
    private readonly statements: Statements,
    private readonly faults: SimulatedFaults,
    private readonly settings: GpuaasSettings,
  ) {
    super();
  }

  canSwitchUnderTenants(mechanism: Mechanism): boolean {
    return mechanism !== 'mig';
  }

  async initialise(
    { nodeName }: NodeRef,
    deviceUuids: readonly string[],
    leaseIds: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    if ((await this.faults.of(nodeName, 'init', signal)) === 'lie') return;
    await this.statements.query(
      `INSERT INTO simulated_device (uuid) SELECT * FROM unnest($1::text[]) ON CONFLICT (uuid) DO UPDATE
         SET failure = NULL, holders = ARRAY(SELECT unnest(simulated_device.holders) INTERSECT SELECT unnest($2::text[])),
           pending_mode = CASE WHEN simulated_device.ready_at = 'infinity' THEN NULL ELSE simulated_device.pending_mode END`,
      [deviceUuids, leaseIds],
    );
  }

  async reset({ nodeName }: NodeRef, deviceUuids: readonly string[], signal: AbortSignal): Promise<void> {
    if ((await this.faults.of(nodeName, 'init', signal)) === 'lie') return;
    await this.statements.query(
      `INSERT INTO simulated_device (uuid) SELECT * FROM unnest($1::text[]) ON CONFLICT (uuid) DO UPDATE
         SET failure = NULL, pending_mode = NULL, holders = '{}', mode = 'Spatial'`,
      [deviceUuids],
    );
  }

  async request({ nodeName, uuid }: DeviceRef, { mode, generation }: DeviceLayout, signal: AbortSignal): Promise<void> {
    const fault = await this.faults.of(nodeName, 'switch', signal);
    const readyAt =
      fault === 'hang'
        ? 'infinity'
        : new Date(Date.now() + (fault === 'slow' ? slowSwitchMs : this.settings.simulatedSwitchMs)).toISOString();
    await this.statements.query(
      `UPDATE simulated_device SET generation = $2, failure = $5,
         pending_mode = CASE WHEN $6 THEN NULL WHEN $5::text IS NOT NULL THEN NULL ELSE $3 END, ready_at = $4
       WHERE uuid = $1 AND generation < $2`,
      [uuid, generation, mode, readyAt, fault === 'fail' ? 'The device could not be switched.' : null, fault === 'lie'],
    );
  }

  async observeAll(
    { nodeName }: NodeRef,
    uuids: readonly string[],
    signal: AbortSignal,
  ): Promise<Map<string, DeviceReport>> {
    const fault = await this.faults.of(nodeName, 'observe', signal);
    // A device that another statement writes to arrives with the next look.
    const devices = await this.statements.query<DeviceRow>(
      `WITH arrived AS (
         UPDATE simulated_device SET mode = pending_mode, pending_mode = NULL WHERE uuid = ANY (ARRAY(
           SELECT uuid FROM simulated_device WHERE uuid = ANY ($1::text[]) AND pending_mode IS NOT NULL AND ready_at <= clock_timestamp()
           FOR NO KEY UPDATE SKIP LOCKED
         )) RETURNING *
       ), found AS (
         SELECT * FROM arrived
         UNION ALL
         SELECT * FROM simulated_device WHERE uuid = ANY ($1::text[]) AND NOT EXISTS (SELECT FROM arrived WHERE arrived.uuid = simulated_device.uuid)
       )
       SELECT uuid, mode, generation, pending_mode IS NOT NULL AS is_switching, failure, holders FROM found`,
      [uuids],
    );
    return new Map(
      devices.map(({ uuid, mode, generation, is_switching, failure, holders }) => {
        const state = is_switching ? 'switching' : failure ? 'failed' : 'settled';
        return [
          uuid,
          {
            mode,
            generation,
            state,
            reason: failure,
            holders: fault === 'busy' ? [...holders, 'another process'] : holders,
          },
        ];
      }),
    );
  }

  async confirm(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<InstanceIds> {
    for (const nodeName of nodesOf(slices)) await this.faults.of(nodeName, 'confirm', signal);
    return instanceIds(slices);
  }

  async occupy(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<InstanceIds> {
    for (const nodeName of nodesOf(slices)) await this.faults.of(nodeName, 'occupy', signal);
    await this.hold(slices, true);
    return instanceIds(slices);
  }

  async vacate(slices: readonly LeasedSlice[], signal: AbortSignal): Promise<void> {
    const stuck = new Set<string>();
    for (const nodeName of nodesOf(slices)) {
      const fault = await this.faults.of(nodeName, 'vacate', signal);
      if (fault === 'busy' || fault === 'lie') stuck.add(nodeName);
    }
    await this.hold(
      slices.filter(({ nodeName }) => !stuck.has(nodeName)),
      false,
    );
  }

  private async hold(slices: readonly LeasedSlice[], isHeld: boolean): Promise<void> {
    await this.statements.query(
      `UPDATE simulated_device SET holders = ARRAY(
           SELECT unnest(holders) EXCEPT SELECT unnest(leases) UNION SELECT unnest(leases) WHERE $3
         ) FROM (
         SELECT uuid, array_agg(lease) AS leases FROM unnest($1::text[], $2::text[]) slice (uuid, lease) GROUP BY uuid
       ) given WHERE simulated_device.uuid = given.uuid`,
      [slices.map(({ uuid }) => uuid), slices.map(({ leaseId }) => leaseId), isHeld],
    );
  }
}

function nodesOf(slices: readonly LeasedSlice[]): Set<string> {
  return new Set(slices.map(({ nodeName }) => nodeName));
}

/** MIG profiles are named `<compute>g.<memory>gb`. Ids of instances are not their starts; these are as good as any. */
function instanceIds(slices: readonly LeasedSlice[]): InstanceIds {
  return new Map(
    slices.flatMap(({ leaseId, profile, slotStart }) =>
      /^\dg\./.test(profile) && slotStart !== null ? [[leaseId, slotStart + 1]] : [],
    ),
  );
}
