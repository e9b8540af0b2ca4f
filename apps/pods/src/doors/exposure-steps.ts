import { ClusterError, type ClusterDriver, type Door, type DoorSight, type RunRef } from '@atoll/cluster';
import { StepFailed, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { spreadMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { Certificates } from '../certificates/certificates.js';
import { Clusters } from '../cluster/clusters.js';
import { self, StepsOnCluster } from '../cluster/steps-on-cluster.js';
import { doorsBefore, type DoorTerms, type ExposureEntity } from '../model/exposure.entity.js';
import { exposureMachine, type ExposureEvent, type ExposureState } from '../model/exposure.machine.js';
import { ExternalPorts } from './ports.js';

type Found = Outcome<ExposureEntity, ExposureEvent>;

/** A door that opens is looked at after 20, 40, 80 … ms. */
const firstLookMs = 20;
const longestLookMs = 500;
/** After so long in `updating`, closing the old door is left to reviews. */
const oldDoorMs = 30_000;
const reviewMs = 600_000;

/** Exposed services: opened, moved from door to door, and closed. */
@Injectable()
export class ExposureSteps extends StepsOnCluster<ExposureEntity, ExposureState, ExposureEvent> {
  protected readonly what = 'exposed service';
  override readonly owner = 'coalesce(owner_id, (SELECT team_id FROM pod WHERE pod.pod_id = exposure.pod_id))';

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly certificates: Certificates,
    private readonly ports: ExternalPorts,
  ) {
    super(dataSource, exposureMachine);
  }

  protected async work(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    switch (exposure.state as ExposureState) {
      case 'pending':
        return { event: 'OPENS' };
      case 'provisioning':
      case 'reverting':
        return this.provision(exposure, context);
      case 'updating':
        return this.update(exposure, context);
      case 'active':
        return this.review(exposure, context);
      case 'deleting':
      case 'failing':
        return this.close(exposure, context);
      default:
        return 'rest';
    }
  }

  /** The end of a pod takes its exposed services with it. */
  async deleteOf(manager: EntityManager, podIds: readonly string[], reason: string): Promise<void> {
    const condition = `pod_id = ANY ($1) AND state NOT IN ('deleting', 'deleted')`;
    await this.moveAll(manager, await this.lockWhere(manager, condition, [podIds]), 'DELETE', { ...self, reason });
  }

  protected override async entered(
    manager: EntityManager,
    exposure: ExposureEntity,
    passage: Passage<ExposureState, ExposureEvent>,
  ): Promise<void> {
    await super.entered(manager, exposure, passage);
    const { serviceId, state, next, lastError } = exposure;
    if (state === 'deleted' || state === 'failed') return this.ports.release(manager, serviceId);
    // All other doors are closed.
    if (passage.event === 'OPENED') return this.ports.releaseOthers(manager, exposure);
    if (state !== 'reverting' || next === null) return;
    const problem = lastError && { code: lastError.code, message: lastError.message };
    await manager.query(
      `UPDATE exposure SET next = NULL, problem = coalesce($2::jsonb, problem), service_name = coalesce(next->>'previousName', service_name)
       WHERE service_id = $1`,
      [serviceId, problem && JSON.stringify(problem)],
    );
  }

  private async provision(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(exposure.gpuaasId);
    const isReverting = exposure.state === 'reverting';
    // Doors that could not be had before this one, and that of an update that came to nothing.
    const hasOthers = isReverting || exposure.run > 1;
    if (hasOthers && !(await this.closeRuns(driver, exposure, (run) => run !== exposure.run, context)))
      return { againAfterMs: firstLookMs };
    const sight = await this.open(driver, exposure, exposure, context);
    if (sight.phase === 'open') return { event: 'OPENED' };
    if (!isPortTaken(sight)) return { againAfterMs: lookAfter(exposure), ...reasonOf(sight) };
    if (exposure.isPicked && !isReverting) return this.pickAnother(exposure.run);
    const { code, message } = taken(exposure.externalPort);
    throw new StepFailed(code, message, true);
  }

  /** Another port, by a door of its own: what there is of the first one is closed before. */
  private pickAnother(run: number): Found {
    return {
      decide: async (manager, row) => {
        if (row.run !== run) return;
        await this.ports.markForeign(manager, row.serviceId, row.externalPort);
        const picked = await this.ports.pickAny(manager, row.publicHost, row.serviceId);
        if (picked === undefined) await this.move(manager, row, 'FAILED', self, {}, taken(row.externalPort));
        else {
          await manager.query('UPDATE exposure SET external_port = $2, run = run + 1 WHERE service_id = $1', [
            row.serviceId,
            picked,
          ]);
          await this.park(manager, row, 0);
        }
      },
    };
  }

  /** Make before break: the old door closes when the new one is open. On one port the old one has to close first. */
  private async update(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    const { next, run } = exposure;
    if (!next) return this.closeOld(exposure, context);
    const driver = await this.clusters.driverOf(exposure.gpuaasId);
    const isSamePort = next.externalPort === exposure.externalPort;
    if (isSamePort && !(await this.closeRuns(driver, exposure, (of) => of === run, context)))
      return { againAfterMs: firstLookMs };
    const sight = await this.open(driver, exposure, { ...next, run: run + 1 }, context);
    if (isPortTaken(sight)) return this.moving('REVERTED', self, () => ({ problem: taken(next.externalPort) }));
    if (sight.phase !== 'open') return { againAfterMs: lookAfter(exposure), ...reasonOf(sight) };
    const { port, protocol, externalPort, isSsl } = next;
    return { againAfterMs: 0, reason: null, values: { port, protocol, externalPort, isSsl, run: run + 1, next: null } };
  }

  /** The update is done when the old door is closed and its port given back, so that a service holds two at most. */
  private async closeOld(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    // Before anything is asked of a cluster, which may be away.
    if (Date.now() - exposure.enteredAt.getTime() > oldDoorMs) return { event: 'SWITCHED' };
    const driver = await this.clusters.driverOf(exposure.gpuaasId);
    if (!(await this.closeRuns(driver, exposure, (run) => run !== exposure.run, context)))
      return { againAfterMs: lookAfter(exposure) };
    return {
      decide: async (manager, row) => {
        await this.ports.releaseOthers(manager, row);
        await this.move(manager, row, 'SWITCHED', self);
      },
    };
  }

  /** The old doors are closed, the present one is open and has the certificate of today. */
  private async review(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(exposure.gpuaasId);
    const isClosed = await this.closeRuns(driver, exposure, (run) => run !== exposure.run, context);
    const sight = await this.open(driver, exposure, exposure, context);
    if (isClosed) await this.giveBackOldPort(exposure);
    if (sight.phase === 'open') return { againAfterMs: isClosed ? spreadMs(reviewMs) : longestLookMs };
    return isPortTaken(sight)
      ? { event: 'REOPEN', reason: taken(exposure.externalPort) }
      : { againAfterMs: longestLookMs, ...reasonOf(sight) };
  }

  /**
   * Its door is closed: another service may have the port. Not while an update has reserved one: the service is locked
   * as by an update, since PostgreSQL checks again only what a statement locks, after it has waited for another.
   */
  private async giveBackOldPort({ serviceId, revision }: ExposureEntity): Promise<void> {
    await this.query(
      `WITH unchanged AS MATERIALIZED (
         SELECT service_id, external_port FROM exposure WHERE service_id = $1 AND revision = $2 FOR NO KEY UPDATE
       )
       DELETE FROM reserved_port USING unchanged
       WHERE reserved_port.service_id = unchanged.service_id AND reserved_port.external_port <> unchanged.external_port`,
      [serviceId, revision],
    );
  }

  private async close(exposure: ExposureEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(exposure.gpuaasId);
    if (!(await this.closeRuns(driver, exposure, () => true, context))) return { againAfterMs: lookAfter(exposure) };
    return this.gone(exposure, 'CLOSED');
  }

  private async open(
    driver: ClusterDriver,
    { serviceId, podId, publicHost }: ExposureEntity,
    { port, protocol, externalPort, isSsl, run }: DoorTerms & { readonly run: number },
    context: StepContext,
  ): Promise<DoorSight> {
    const tls = isSsl ? await this.certificates.of(publicHost) : null;
    const ref = refOf(serviceId, run);
    const transport = protocol === 'UDP' ? 'udp' : 'tcp';
    try {
      const owner = await this.ownerOf(podId);
      await driver.openDoor({ ref, podId, owner, transport, port, externalPort, tls }, context.signal);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.code !== 'port_in_use') throw error;
      return { phase: 'opening', trouble: { code: error.code, message: error.message } };
    }
    const [sight] = await driver.observeDoors([ref], context.signal);
    return sight ?? { phase: 'absent' };
  }

  private async ownerOf(podId: string): Promise<Door['owner']> {
    const [pod] = await this.query<{ teamId: string; workspaceId: string }>(
      'SELECT team_id AS "teamId", workspace_id AS "workspaceId" FROM pod WHERE pod_id = $1',
      [podId],
    );
    if (!pod) throw new StepFailed('not_found', 'The pod is gone.', true);
    return pod;
  }

  /**
   * Throws where another process has gone on with the service since this step read it: it may have made a door current
   * that this step would close.
   */
  private async requireUnchanged({ serviceId, run, revision }: ExposureEntity): Promise<void> {
    const unchanged = 'SELECT FROM exposure WHERE service_id = $1 AND run = $2 AND revision = $3';
    const rows = await this.query(unchanged, [serviceId, run, revision]);
    if (rows.length === 0) throw new StepFailed('changed', 'The exposed service has changed meanwhile.', false);
  }

  /** Requests the end of those doors; whether they are all gone. Runs before the last `doorsBefore` are long gone. */
  private async closeRuns(
    driver: ClusterDriver,
    exposure: ExposureEntity,
    isWanted: (run: number) => boolean,
    context: StepContext,
  ): Promise<boolean> {
    const first = Math.max(1, exposure.run - doorsBefore);
    const runs = Array.from({ length: exposure.run + 1 - first + 1 }, (_, at) => first + at).filter(isWanted);
    const refs = runs.map((run) => refOf(exposure.serviceId, run));
    if (refs.length === 0) return true;
    // Also those that cannot be seen: what a crash of the engine has left of a removal keeps its port.
    for (const ref of refs) {
      if (ref.run >= exposure.run) await this.requireUnchanged(exposure);
      await driver.remove(ref, context.signal);
    }
    return (await driver.observeDoors(refs, context.signal)).every(({ phase }) => phase === 'absent');
  }
}

function refOf(serviceId: string, run: number): RunRef {
  return { kind: 'door', id: `svc-${serviceId}`, run };
}

function isPortTaken(sight: DoorSight): boolean {
  return sight.phase === 'opening' && sight.trouble?.code === 'port_in_use';
}

function taken(port: number): { code: string; message: string } {
  return { code: 'port_in_use', message: `Something else on the host listens on the external port ${port}.` };
}

function reasonOf(sight: DoorSight): { reason?: { code: string; message: string } } {
  return sight.phase === 'opening' && sight.trouble ? { reason: sight.trouble } : {};
}

/** The longer it takes, the later it is looked at again. */
function lookAfter({ enteredAt }: ExposureEntity): number {
  return Math.min(longestLookMs, Math.max(firstLookMs, Date.now() - enteredAt.getTime()));
}
