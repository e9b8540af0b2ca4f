import {
  allOrPage,
  notFound,
  requirePermission,
  windowIfLimited,
  type CallContext,
  type Caller,
  type Permission,
} from '@atoll/contracts';
import {
  type ExposedService,
  type ExposedServiceList,
  type ListExposedServices,
  type ExposedServicePath,
  type ExposeService,
  type FindExposedService,
  type ServiceProtocol,
  type UpdateExposedService,
} from '@atoll/contracts/pods';
import { readPage, Statements, takeTurn, Transactions, unique, Writers } from '@atoll/database';
import { AppError, invalidField, requireSomeField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { livePod } from '../model/pod.machine.js';
import { PodReader } from '../pods/pod-reader.js';
import { PodSteps } from '../pods/pod-steps.js';
import type { DoorTerms, ExposureEntity } from '../model/exposure.entity.js';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { exposureView } from './exposure-view.js';
import { ExternalPorts, mostOfTeam } from '../doors/ports.js';

interface Known {
  readonly exposure: ExposureEntity;
  readonly podName: string;
  readonly teamId: string;
  readonly workspaceId: string;
}

const exposable: ReadonlySet<string> = new Set(['pending', 'pulling', 'running', 'restarting']);

/** Services of pods that are reached from outside. */
@Injectable()
export class ExposuresService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly clusters: Clusters,
    private readonly pods: PodReader,
    private readonly podSteps: PodSteps,
    private readonly steps: ExposureSteps,
    private readonly ports: ExternalPorts,
  ) {}

  /** The number is reserved when this has answered: of two who ask for one, one gets `port_in_use`. */
  async expose(asked: ExposeService, context: CallContext): Promise<ExposedService> {
    const kept = await this.transactions.kept<ExposedService>(context);
    if (kept) return kept;
    const { protocol, external_port, ssl_enabled = false } = asked;
    requireFitting(protocol, ssl_enabled);
    if (external_port !== undefined) this.ports.requireOffered(external_port);
    const pod = await this.pods.find(asked.pod_name, context.caller, 'useResources');
    await this.gate.requireGrowth(context.caller, pod.teamId, 'pod');
    await this.requireSupported(pod.gpuaasId, protocol, ssl_enabled);
    await this.clusters.requireReachable(pod.gpuaasId);
    const publicHost = await this.clusters.publicHostOf(pod.gpuaasId);
    return this.writers.once(turnOf(pod.teamId), context, async (manager) => {
      await this.gate.holdOpen(manager, context.caller, pod);
      await requireRoom(manager, pod.teamId);
      await this.ports.requireShare(manager, publicHost, pod.teamId);
      await this.lockExposable(manager, pod.podId);
      const values = {
        podId: pod.podId,
        ownerId: pod.teamId,
        gpuaasId: pod.gpuaasId,
        publicHost,
        serviceName: asked.service_name,
        port: asked.port,
        protocol,
        externalPort: external_port ?? 0,
        isSsl: ssl_enabled,
        isPicked: external_port === undefined,
        run: 1,
        createdAt: new Date(),
      };
      await this.requireNameFree(manager, pod.podId, asked.service_name);
      const exposure = await this.steps.insert(manager, values, causeOf(context));
      if (external_port === undefined) {
        exposure.externalPort = await this.ports.pick(manager, publicHost, exposure.serviceId);
        await manager.query('UPDATE exposure SET external_port = $2 WHERE service_id = $1', [
          exposure.serviceId,
          exposure.externalPort,
        ]);
      } else await this.ports.reserve(manager, publicHost, external_port, exposure.serviceId);
      return exposureView(exposure, pod.podName);
    });
  }

  /** All of them unless `limit` was sent. */
  async list({ pod_name, ...asked }: ListExposedServices, { caller }: CallContext): Promise<ExposedServiceList> {
    const pod = await this.pods.find(pod_name, caller, 'readTeam');
    const window = windowIfLimited(asked);
    const { total, rows } = await readPage<object>(this.statements, {
      from: `exposure WHERE pod_id = $1 AND state <> 'deleted'`,
      order: 'created_at, service_id',
      window: 'LIMIT $2 OFFSET $3',
      values: [pod.podId, window?.limit ?? null, window?.offset ?? 0],
    });
    const data = rows.map((raw) => exposureView(this.steps.rowOf(raw), pod.podName));
    return allOrPage(data, window, total);
  }

  async find(asked: FindExposedService, { caller }: CallContext): Promise<ExposedService> {
    const { exposure, podName } = await this.known(asked, caller, 'readTeam');
    return exposureView(exposure, podName);
  }

  async update(asked: UpdateExposedService, context: CallContext): Promise<ExposedService> {
    requireSomeField(asked, 'service_name', 'port', 'protocol', 'external_port', 'ssl_enabled');
    const { service_name, external_port } = asked;
    if (external_port !== undefined) this.ports.requireOffered(external_port);
    const known = await this.known(asked, context.caller, 'useResources');
    await this.gate.requireGrowth(context.caller, known.teamId, 'exposed service');
    const terms = termsOf(asked, known.exposure);
    requireFitting(terms.protocol, terms.isSsl);
    await this.requireSupported(known.exposure.gpuaasId, terms.protocol, terms.isSsl);
    return this.transactions.run(async (manager) => {
      await this.gate.holdOpen(manager, context.caller, known);
      const exposure = await this.steps.lockLive(manager, known.exposure.serviceId);
      if (exposure.state !== 'active')
        throw new AppError(
          'conflict',
          `The service is ${exposureView(exposure, '').status}; only an active service can be updated.`,
        );
      const previousName = exposure.serviceName;
      if (service_name !== undefined && service_name !== previousName)
        await this.rename(manager, exposure, service_name);
      const next = { ...termsOf(asked, exposure), previousName };
      if (isSame(next, exposure)) {
        await manager.query('UPDATE exposure SET problem = NULL WHERE service_id = $1', [exposure.serviceId]);
        return exposureView(Object.assign(exposure, { problem: null }), known.podName);
      }
      await this.ports.requireNoOther(manager, exposure);
      if (next.externalPort !== exposure.externalPort) {
        await this.ports.requireShare(manager, exposure.publicHost, known.teamId);
        await this.ports.reserve(manager, exposure.publicHost, next.externalPort, exposure.serviceId);
      }
      const values = { next, problem: null, ...(external_port !== undefined && { isPicked: false }) };
      const moved = await this.steps.move(manager, exposure, 'UPDATE', causeOf(context), values);
      return exposureView(moved ?? exposure, known.podName);
    });
  }

  private async rename(manager: EntityManager, exposure: ExposureEntity, name: string): Promise<void> {
    await this.requireNameFree(manager, exposure.podId, name);
    const renaming = `UPDATE exposure SET service_name = $2, renamed_at = clock_timestamp() WHERE service_id = $1 RETURNING renamed_at AS "renamedAt"`;
    const asked = manager.query<[{ renamedAt: Date }[], number]>(renaming, [exposure.serviceId, name]);
    const [[renamed]] = await unique(asked, nameTaken(name));
    Object.assign(exposure, { serviceName: name, ...renamed });
  }

  async delete({ id }: ExposedServicePath, context: CallContext): Promise<ExposedService> {
    const known = await this.known({ service_id: id }, context.caller, 'useResources');
    return this.transactions.run(async (manager) => {
      const exposure = await this.steps.lockLive(manager, known.exposure.serviceId);
      if (exposure.state === 'deleting') throw notFound('exposed service');
      return exposureView(
        (await this.steps.move(manager, exposure, 'DELETE', causeOf(context))) ?? exposure,
        known.podName,
      );
    });
  }

  private async known(
    { service_id, pod_name }: FindExposedService,
    caller: Caller,
    permission: Permission,
  ): Promise<Known> {
    const [raw] = await this.statements.query<{ pod_name: string; team_id: string; workspace_id: string }>(
      `SELECT exposure.*, pod_name, team_id, workspace_id FROM exposure JOIN pod USING (pod_id) WHERE service_id = $1 AND exposure.state <> 'deleted'`,
      [service_id],
    );
    if (!raw || (pod_name !== undefined && pod_name !== raw.pod_name)) throw notFound('exposed service');
    requirePermission(caller, raw.team_id, permission, 'exposed service');
    return {
      exposure: this.steps.rowOf(raw),
      podName: raw.pod_name,
      teamId: raw.team_id,
      workspaceId: raw.workspace_id,
    };
  }

  /** Until the transaction ends, the pod does not end without this service. */
  private async lockExposable(manager: EntityManager, podId: string): Promise<void> {
    const pod = await this.podSteps.lockLive(manager, podId);
    if (!exposable.has(pod.state))
      throw new AppError('conflict', 'The pod is not running; only services of a running pod can be exposed.');
  }

  private async requireNameFree(manager: EntityManager, podId: string, name: string): Promise<void> {
    const found = await manager.query<object[]>(
      `SELECT FROM exposure WHERE pod_id = $1 AND $2 IN (service_name, next->>'previousName') AND state <> 'deleted' LIMIT 1`,
      [podId, name],
    );
    if (found.length > 0) throw new AppError('conflict', nameTaken(name));
  }

  private async requireSupported(gpuaasId: string, protocol: ServiceProtocol, isSsl: boolean): Promise<void> {
    const capabilities = await this.clusters.capabilitiesOf(gpuaasId);
    if (isSsl && !capabilities.tls)
      throw new AppError(
        'not_supported',
        'The cluster of this GPU service cannot terminate TLS; ssl_enabled must be false.',
      );
    if (protocol === 'UDP' && !capabilities.udp)
      throw new AppError('not_supported', 'The cluster of this GPU service cannot expose UDP.');
  }
}

const turnOf = (teamId: string): string => `exposed services of team ${teamId}`;

/** Within a transaction: throws `conflict` where the team has as many exposed services as a team may have. */
async function requireRoom(manager: EntityManager, teamId: string): Promise<void> {
  await takeTurn(manager, turnOf(teamId));
  const [{ open = 0 } = {}] = await manager.query<{ open: number }[]>(
    `SELECT count(*)::int AS open FROM pod JOIN exposure USING (pod_id)
     WHERE team_id = $1 AND pod.${livePod} AND exposure.state <> 'deleted'`,
    [teamId],
  );
  if (open >= mostOfTeam)
    throw new AppError('conflict', `The team has ${mostOfTeam} exposed services, the maximum for a team.`);
}

const nameTaken = (name: string): string => `The pod has an exposed service named ${name}.`;

function requireFitting(protocol: ServiceProtocol, isSsl: boolean): void {
  if (!isSsl || protocol === 'HTTP' || protocol === 'TCP') return;
  const why = protocol === 'UDP' ? 'TLS can be terminated only for HTTP and TCP' : 'the pod terminates TLS itself';
  throw invalidField('ssl_enabled', 'isFitting', `must be false with ${protocol}: ${why}`);
}

function termsOf({ port, protocol, external_port, ssl_enabled }: UpdateExposedService, present: DoorTerms): DoorTerms {
  return {
    port: port ?? present.port,
    protocol: protocol ?? present.protocol,
    externalPort: external_port ?? present.externalPort,
    isSsl: ssl_enabled ?? present.isSsl,
  };
}

function isSame(one: DoorTerms, other: DoorTerms): boolean {
  return (
    one.port === other.port &&
    one.protocol === other.protocol &&
    one.externalPort === other.externalPort &&
    one.isSsl === other.isSsl
  );
}
