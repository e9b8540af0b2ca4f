import { setTimeout as delay } from 'node:timers/promises';
import {
  DurableMachine,
  StepFailed,
  touchRows,
  type Cause,
  type Outcome,
  type Passage,
  type StepContext,
} from '@atoll/state-machine';
import type { SharingMode } from '@atoll/gpu';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { NodeDriver, type DeviceLayout, type DeviceRef, type DeviceReport } from '../driver/node-driver.js';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { leasesOn, wakeHolders } from './lease-store.js';
import { wakeQueue } from './waiting-requests.js';
import { nodeMachine } from '../model/node.machine.js';
import { PoolCatalogue, type KnownPool } from './pool-catalogue.js';
import { restlessAmong } from './restless-gpus.js';
import { soldProfiles, turnsOf } from './pool-terms.js';
import { giveSlots, giveTurns, settleInSpatial, settleInTemporal, settleOffline } from './gpu-leases.js';
import type { GpuEntity } from '../model/gpu.entity.js';
import { gpuMachine, type GpuEvent, type GpuState } from '../model/gpu.machine.js';

type Found = Outcome<GpuEntity, GpuEvent>;
/** By which a device is asked for a layout. */
type AskingEvent = 'PREPARE' | 'FALL_BACK' | 'RETURN';

/** Between two looks at a device that switches, at first and at most. */
const lookAgainMs = 50;
const mostLookAgainMs = 5_000;
/** In SQL: somebody has a GPU, or waits for it. */
export const isTaken = 'slots_used <> 0 OR turns_used <> 0';
const isBusy = () => new StepFailed('device_busy', 'The device still holds memory of workloads that have stopped.');

/** The sharing mode of each GPU: requests to the device, the meaning of its answers, and the effect on leases. */
@Injectable()
export class GpuSteps extends DurableMachine<GpuEntity, GpuState, GpuEvent> {
  protected readonly lanes = 'ARRAY[node_id::text]';
  override readonly urgent = isTaken;

  constructor(
    dataSource: DataSource,
    private readonly driver: NodeDriver,
    private readonly pools: PoolCatalogue,
    private readonly settings: GpuaasSettings,
  ) {
    super(dataSource, gpuMachine);
  }

  /**
   * Begins the fallback of GPUs that the transaction has locked, by a number of statements that does not grow with the
   * number of GPUs. Each lease on them gets a turn; new leases are inserted after it.
   */
  async fallBackAll(manager: EntityManager, gpus: readonly GpuEntity[], cause: Cause): Promise<void> {
    await giveTurns(
      manager,
      gpus.map(({ gpuId }) => gpuId),
    );
    await this.beginAll(manager, gpus, 'FALL_BACK', cause);
  }

  /**
   * Begins the return of those of these GPUs, which the transaction has locked, that are in Temporal, whose leases fit,
   * whose mechanism allows it, and that have not returned too often of late. The number of statements for each pool
   * does not grow with that of the GPUs.
   */
  async returnAllThatFit(manager: EntityManager, gpus: readonly GpuEntity[], cause: Cause): Promise<void> {
    const inTemporal = gpus.filter(({ state }) => state === 'temporal');
    const gpuIds = inTemporal.map(({ gpuId }) => gpuId);
    const restless = await restlessAmong(manager, gpuIds, this.settings);
    const { staying = [], temporal = [] } = Object.groupBy(inTemporal, ({ gpuId }) =>
      restless.has(gpuId) ? 'staying' : 'temporal',
    );
    await this.parkAll(manager, staying, this.settings.returnRetryMs);
    for (const those of Map.groupBy(temporal, ({ poolId }) => poolId).values()) {
      if (!those[0]) continue;
      const pool = await this.poolOf(those[0], manager);
      const gpuIds = those.map(({ gpuId }) => gpuId);
      const fitting = this.driver.canSwitchUnderTenants(pool.mechanism)
        ? await giveSlots(manager, gpuIds, soldProfiles(pool))
        : await withoutLeases(manager, gpuIds);
      const returning = those.filter(({ gpuId }) => fitting.has(gpuId));
      await this.beginAll(manager, returning, 'RETURN', cause);
    }
  }

  /**
   * Moves locked GPUs by an event that asks the device for a layout, by one statement for those of one state that are
   * asked for one mode.
   */
  async beginAll(manager: EntityManager, gpus: readonly GpuEntity[], event: AskingEvent, cause: Cause): Promise<void> {
    const able = gpus.filter(({ state }) => this.definition.next(state as GpuState, event) !== undefined);
    const spatialPools = event === 'PREPARE' ? await spatialAmong(manager, able) : new Set();
    const askedModeOf = ({ turnsUsed, poolId }: GpuEntity): SharingMode =>
      event === 'RETURN' || (event === 'PREPARE' && turnsUsed === '0' && spatialPools.has(poolId))
        ? 'Spatial'
        : 'Temporal';
    for (const [askedMode, those] of Map.groupBy(able, askedModeOf)) {
      await this.moveAll(manager, those, event, cause, { generation: () => 'generation + 2', askedMode });
    }
  }

  async step(gpu: GpuEntity, context: StepContext): Promise<Found> {
    if (gpu.state === 'temporal') {
      return {
        decide: (manager, row) =>
          this.returnAllThatFit(manager, [row], { actor: 'system:gpuaas', reason: 'retried periodically' }),
      };
    }
    if (!this.ruleOf(gpu.state)) return 'rest';
    const device = await this.deviceOf(gpu);
    let report = await this.driver.observe(device, context.signal);
    if (report.generation > gpu.generation + askedToStay(gpu)) return catchUp(report);
    if (gpu.state === 'doubting_temporal' || gpu.state === 'doubting_spatial')
      return this.resolve(gpu, device, report, context);
    const layout = await this.layoutOf(gpu, gpu.askedMode ?? 'Spatial', gpu.generation);
    if (report.generation < gpu.generation) {
      if (gpu.state !== 'to_temporal') await this.requireVacated(gpu, report);
      await this.driver.request(device, layout, context.signal);
      if (!isLate(gpu)) return { againAfterMs: lookAgainMs, reason: null };
      report = await this.answerOf(device, context.signal);
    }
    if (report.state === 'switching') return { againAfterMs: this.untilNextLook(gpu) };
    const { sharingMode } = await this.poolOf(gpu);
    return gpu.state === 'preparing' ? prepared(sharingMode, layout, report) : switched(gpu, layout, report);
  }

  protected override async enteredAll(
    manager: EntityManager,
    gpus: readonly GpuEntity[],
    passage: Passage<GpuState, GpuEvent>,
  ): Promise<void> {
    // A GPU that comes into a pool has no leases: its node alone has to know.
    if (passage.from !== 'unpooled') return super.enteredAll(manager, gpus, passage);
    const nodeIds = [...new Set(gpus.map(({ nodeId }) => nodeId))];
    await touchRows(manager, nodeMachine, nodeIds, ['ready', 'cordoned']);
  }

  protected override async entered(
    manager: EntityManager,
    gpu: GpuEntity,
    { from, cause }: Passage<GpuState, GpuEvent>,
  ): Promise<void> {
    const reason = gpu.lastError?.message ?? 'The GPU could not be switched.';
    switch (gpu.state as GpuState) {
      case 'spatial':
        await settleInSpatial(manager, gpu.gpuId, soldProfiles(await this.poolOf(gpu, manager)), reason);
        break;
      case 'temporal':
        await settleInTemporal(manager, gpu.gpuId);
        break;
      case 'offline':
        if (from !== 'temporal' && from !== 'configured_temporal' && from !== 'preparing') {
          await settleOffline(manager, gpu.gpuId, reason);
        }
        await touchRows(manager, nodeMachine, [gpu.nodeId], ['ready', 'cordoned']);
        break;
      default:
        return;
    }
    await wakeHolders(manager, gpu.gpuId);
    if (gpu.poolId !== null) await wakeQueue(manager, gpu.poolId);
    if (gpu.state === 'temporal') await this.afterFallBack(manager, gpu, from, cause);
  }

  /** Somebody may have gone on the way. A device that has just refused to return is left alone for a while. */
  private async afterFallBack(manager: EntityManager, gpu: GpuEntity, from: GpuState, cause: Cause): Promise<void> {
    if (from !== 'to_spatial' && from !== 'doubting_spatial') {
      await this.returnAllThatFit(manager, [gpu], cause);
      return;
    }
    await this.park(manager, gpu, this.settings.returnRetryMs);
  }

  /** After a switch that failed or did not end: only what the device says of itself counts. */
  private async resolve(gpu: GpuEntity, device: DeviceRef, report: DeviceReport, context: StepContext): Promise<Found> {
    const reason = {
      code: 'switch_failed',
      message: gpu.lastError?.message ?? report.reason ?? 'The switch did not end.',
    };
    if (report.state === 'switching') throw new StepFailed('switch_endless', reason.message);
    const to = gpu.askedMode ?? 'Spatial';
    if (report.generation < gpu.generation) {
      // It never heard of the switch, and could yet: what it hears first is to stay, and what comes after that is
      // older.
      const layout = await this.layoutOf(gpu, to === 'Spatial' ? 'Temporal' : 'Spatial', gpu.generation + 1);
      await this.driver.request(device, layout, context.signal);
      return { againAfterMs: lookAgainMs };
    }
    const isStaying = report.generation > gpu.generation || to === 'Temporal';
    if (report.state === 'settled' && report.mode === to) return { event: 'ARRIVED' };
    // A device that failed on its way back is in no state to be trusted; one that failed on its way out says where it
    // is.
    const hasStayed = isStaying && report.mode !== null && report.mode !== to;
    return hasStayed ? { event: 'STAYED', reason } : { event: 'LOST', reason };
  }

  /**
   * A tenth of the time that the device has had: of many that take long, or never end, none is looked at twenty times a
   * second.
   */
  private untilNextLook({ state, deadlineAt }: GpuEntity): number {
    const leftMs = (deadlineAt?.getTime() ?? Infinity) - Date.now();
    const sinceMs = (this.ruleOf(state)?.deadlineMs ?? 0) - leftMs;
    return Math.min(mostLookAgainMs, Math.max(lookAgainMs, Math.round(sinceMs / 10)));
  }

  /** What the device says once it is done. */
  private async answerOf(device: DeviceRef, signal: AbortSignal): Promise<DeviceReport> {
    for (;;) {
      await delay(lookAgainMs, undefined, { signal });
      const report = await this.driver.observe(device, signal);
      if (report.state !== 'switching') return report;
    }
  }

  private async requireVacated(gpu: GpuEntity, { holders }: DeviceReport): Promise<void> {
    if (holders.length === 0) return;
    const [{ strangers = 0 } = {}] = await this.query<{ strangers: number }>(
      `SELECT count(*)::int AS strangers FROM unnest($2::text[]) holder
       WHERE NOT EXISTS (SELECT FROM lease WHERE gpu_id = $1 AND lease_id::text = holder)`,
      [gpu.gpuId, holders],
    );
    if (strangers > 0) throw isBusy();
  }

  private async layoutOf(gpu: GpuEntity, mode: SharingMode, generation: number): Promise<DeviceLayout> {
    const pool = await this.poolOf(gpu);
    if (mode === 'Spatial') return { mode, mechanism: pool.mechanism, replicas: pool.replicas, generation };
    return { mode, mechanism: 'time_slicing', replicas: turnsOf(pool), generation };
  }

  private async poolOf({ poolId }: GpuEntity, manager?: EntityManager): Promise<KnownPool> {
    return this.pools.pool(poolId ?? '0', manager);
  }

  private async deviceOf({ uuid, nodeId }: GpuEntity): Promise<DeviceRef> {
    const [node] = await this.query<{ nodeName: string; gpuaasId: string }>(
      'SELECT node_name AS "nodeName", gpuaas_id AS "gpuaasId" FROM node WHERE node_id = $1',
      [nodeId],
    );
    if (!node) throw new Error(`GPU ${uuid} has no node.`);
    return { ...node, uuid };
  }
}

async function withoutLeases(manager: EntityManager, gpuIds: readonly string[]): Promise<Set<string>> {
  const leases = await leasesOn(manager, gpuIds);
  return new Set(gpuIds.filter((gpuId) => !leases.has(gpuId)));
}

/** The pools of these GPUs that are Spatial; within the transaction, which may be the one that creates the pool. */
async function spatialAmong(manager: EntityManager, gpus: readonly GpuEntity[]): Promise<Set<string | null>> {
  const poolIds = [...new Set(gpus.map(({ poolId }) => poolId))];
  if (poolIds.length === 0) return new Set();
  const query = `SELECT pool_id FROM pool WHERE pool_id = ANY ($1::bigint[]) AND sharing_mode = 'Spatial'`;
  const found = await manager.query<{ pool_id: string }[]>(query, [poolIds]);
  return new Set(found.map(({ pool_id }) => pool_id));
}

/** Its turn came after its deadline, where very many are prepared at once: no later look would count. */
function isLate({ deadlineAt }: GpuEntity): boolean {
  return deadlineAt !== null && deadlineAt.getTime() <= Date.now();
}

/** While it is in doubt the device may have been asked to stay, by the odd number after that of the row. */
function askedToStay({ state }: GpuEntity): 0 | 1 {
  return state === 'doubting_temporal' || state === 'doubting_spatial' ? 1 : 0;
}

/**
 * The device was asked for more than the platform knows of, as after a restored backup: it would take whatever it is
 * asked for now for something older. From here on the platform counts on from the device's number, and asks once more.
 */
function catchUp({ generation }: DeviceReport): Found {
  return { againAfterMs: 0, values: { generation: generation + 2 - (generation % 2) } };
}

/** The device is at rest, or has failed, after what was asked. */
function switched({ state }: GpuEntity, layout: DeviceLayout, report: DeviceReport): Found {
  if (hasArrived(layout, report)) return { event: 'ARRIVED' };
  const event = state === 'to_temporal' && report.mode === 'Spatial' ? 'STAYED' : 'DOUBT';
  return { event, reason: failureOf(report) };
}

function prepared(sharingMode: SharingMode, layout: DeviceLayout, report: DeviceReport): Found {
  if (!hasArrived(layout, report)) return { event: 'LOST', reason: failureOf(report) };
  if (layout.mode === 'Spatial') return { event: 'IS_SPATIAL' };
  return { event: sharingMode === 'Temporal' ? 'IS_CONFIGURED_TEMPORAL' : 'IS_TEMPORAL' };
}

function hasArrived(layout: DeviceLayout, { mode, state }: DeviceReport): boolean {
  return state === 'settled' && mode === layout.mode;
}

function failureOf({ reason }: DeviceReport): { code: string; message: string } {
  return { code: 'switch_failed', message: reason ?? 'The device reports that it is done, but it is not.' };
}
