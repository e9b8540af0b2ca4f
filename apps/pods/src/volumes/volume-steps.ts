import type { ClusterDriver, VolumeRef, VolumeSight } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { StepFailed, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { UsageTeller, type HeldUsage } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { self, StepsOnCluster } from '../cluster/steps-on-cluster.js';
import type { VolumeEntity } from '../model/volume.entity.js';
import { gigabytesOf } from '../model/volume-size.js';
import { volumeMachine, type VolumeEvent, type VolumeState } from '../model/volume.machine.js';

type Found = Outcome<VolumeEntity, VolumeEvent>;

/** A volume that is created, grown or removed is looked at after 50, 100, 200 … ms. */
const firstLookMs = 50;
const longestLookMs = 5_000;
const lost = { code: 'lost', message: 'The cluster no longer has the volume.' };

/** Shared volumes: created, grown and removed in the cluster of their GPU service. */
@Injectable()
export class VolumeSteps extends StepsOnCluster<VolumeEntity, VolumeState, VolumeEvent> {
  protected readonly what = 'shared volume';

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly usage: UsageTeller,
  ) {
    super(dataSource, volumeMachine);
  }

  protected async work(volume: VolumeEntity, context: StepContext): Promise<Found> {
    if (volume.state === 'failed') return 'rest';
    const driver = await this.clusters.driverOf(volume.gpuaasId);
    switch (volume.state as VolumeState) {
      case 'pending':
        return this.make(driver, volume, context);
      case 'growing':
        return this.grow(driver, volume, context);
      case 'active':
        return this.review(driver, volume, context);
      case 'deleting':
      case 'failing':
        return this.remove(driver, volume, context);
      default:
        return 'rest';
    }
  }

  protected override async entered(
    manager: EntityManager,
    volume: VolumeEntity,
    passage: Passage<VolumeState, VolumeEvent>,
  ): Promise<void> {
    await super.entered(manager, volume, passage);
    if (passage.event === 'KEPT')
      await manager.query('UPDATE shared_volume SET next_size_gb = NULL WHERE volume_id = $1', [volume.volumeId]);
    const isHeld = volume.state === 'active' || volume.state === 'growing';
    const billedGb = isHeld ? volume.sizeGb : 0;
    if (billedGb === volume.billedGb) return;
    await this.usage.tell(manager, podUsageTold, [{ ...usageOf(volume, billedGb), at: afterUsed(volume) }]);
    await manager.query('UPDATE shared_volume SET billed_gb = $2 WHERE volume_id = $1', [volume.volumeId, billedGb]);
  }

  private async make(driver: ClusterDriver, volume: VolumeEntity, context: StepContext): Promise<Found> {
    const sight = await request(driver, volume, volume.sizeGb, context);
    if (sight.phase !== 'ready') return notYet(volume, sight);
    return this.moving('MADE', self, () => ({ usedBytes: bytesOf(sight) }));
  }

  private async grow(driver: ClusterDriver, volume: VolumeEntity, context: StepContext): Promise<Found> {
    // A request would create it anew, empty.
    if ((await observe(driver, volume, context)).phase === 'absent') return { event: 'LOST', reason: lost };
    const sizeGb = volume.nextSizeGb ?? volume.sizeGb;
    const sight = await request(driver, volume, sizeGb, context);
    if (sight.phase !== 'ready' || (sight.sizeGb !== null && sight.sizeGb < sizeGb)) return notYet(volume, sight);
    return this.moving('GROWN', self, () => ({ sizeGb, nextSizeGb: null, usedBytes: bytesOf(sight) }));
  }

  private async review(driver: ClusterDriver, volume: VolumeEntity, context: StepContext): Promise<Found> {
    return (await observe(driver, volume, context)).phase === 'absent' ? { event: 'LOST', reason: lost } : 'rest';
  }

  private async remove(driver: ClusterDriver, volume: VolumeEntity, context: StepContext): Promise<Found> {
    await driver.remove(refOf(volume), context.signal);
    if ((await observe(driver, volume, context)).phase !== 'absent') return { againAfterMs: lookAfter(volume) };
    return this.gone(volume, 'REMOVED');
  }
}

function refOf({ volumeId, teamId }: VolumeEntity): VolumeRef {
  return { kind: 'volume', id: volumeId, run: 0, teamId };
}

async function request(
  driver: ClusterDriver,
  volume: VolumeEntity,
  sizeGb: number,
  context: StepContext,
): Promise<VolumeSight> {
  await driver.makeVolume({ ref: refOf(volume), workspaceId: volume.workspaceId, sizeGb }, context.signal);
  return observe(driver, volume, context);
}

async function observe(driver: ClusterDriver, volume: VolumeEntity, context: StepContext): Promise<VolumeSight> {
  const [sight] = await driver.observeVolumes([refOf(volume)], context.signal);
  if (!sight) throw new Error('The driver returned no result.');
  return sight;
}

function notYet(volume: VolumeEntity, sight: VolumeSight): Found {
  const trouble = sight.phase === 'preparing' ? sight.trouble : null;
  if (trouble) throw new StepFailed(trouble.code, trouble.message, false);
  return { againAfterMs: lookAfter(volume) };
}

function bytesOf(sight: VolumeSight & { phase: 'ready' }): string | null {
  return sight.usedBytes === null ? null : String(sight.usedBytes);
}

/** The longer it takes, the later it is looked at again. */
function lookAfter({ enteredAt }: VolumeEntity): number {
  return Math.min(longestLookMs, Math.max(firstLookMs, Date.now() - enteredAt.getTime()));
}

/**
 * When it has entered its state, and not before the used bytes were told: billing goes by time, and the database's
 * clock may have been set back since.
 */
function afterUsed({ enteredAt, usedToldAt }: VolumeEntity): Date {
  return usedToldAt && usedToldAt > enteredAt ? usedToldAt : enteredAt;
}

/** From the volume's `enteredAt` on it has this size; 0: it is no longer held. */
export function usageOf(volume: VolumeEntity, sizeGb: number): HeldUsage {
  const used = gigabytesOf(volume.usedBytes);
  return {
    row: volume,
    kind: 'shared_storage',
    id: volume.volumeId,
    name: volume.name,
    sku: 'storage.shared',
    quantity: sizeGb,
    regionId: volume.regionId,
    ...(used !== null && { attributes: { used_size_in_gb: used } }),
  };
}
