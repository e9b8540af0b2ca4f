import { notFound, pageWindow, requirePermission, type CallContext, type Permission } from '@atoll/contracts';
import {
  type BaremetalCredentials,
  type BaremetalInstance,
  type BaremetalPage,
  type BaremetalPath,
  type ListBaremetal,
  type RequestBaremetal,
} from '@atoll/contracts/gpuaas';
import { newId, readPage, Statements, takeTurn, Transactions, Writers } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { requireRegion } from '../../model/known-region.js';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import { liveBaremetal } from '../../model/baremetal-instance.machine.js';
import { BaremetalInstanceEvents } from './baremetal-instance-events.js';
import { BaremetalInstanceSteps } from './baremetal-instance-steps.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { BaremetalNodeSteps } from '../nodes/baremetal-node-steps.js';
import { BaremetalInstanceReader, statusOf } from './baremetal-instance-reader.js';
import { BaremetalSecrets } from '../hosts/baremetal-secrets.js';
import { requireMatch, requireRoom } from '../nodes/host-matching.js';

/** Bare metal for teams. */
@Injectable()
export class BaremetalInstancesService {
  private readonly logger = new Logger('Baremetal');

  constructor(
    private readonly dataSource: DataSource,
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly teams: TeamDirectory,
    private readonly instances: BaremetalInstanceSteps,
    private readonly nodes: BaremetalNodeSteps,
    private readonly reader: BaremetalInstanceReader,
    private readonly secrets: BaremetalSecrets,
    private readonly events: BaremetalInstanceEvents,
  ) {}

  async request(
    { team_id, workspace_id, region_id, name, specs }: RequestBaremetal,
    context: CallContext,
  ): Promise<BaremetalInstance> {
    const kept = await this.transactions.kept<BaremetalInstance>(context);
    if (kept) return kept;
    if (Object.values(specs).every((value) => value === undefined)) {
      throw invalidField(
        'specs',
        'isNotEmpty',
        'must name at least one of gpu_model, gpu_count, cpu_cores and memory_gb.',
      );
    }
    const workspaceId = await this.gate.requireGrowth(context.caller, team_id, 'team', workspace_id);
    const instanceId = newId();
    const values = {
      instanceId,
      teamId: team_id,
      workspaceId,
      name,
      regionId: region_id ?? null,
      gpuModel: specs.gpu_model ?? null,
      gpuCount: specs.gpu_count ?? null,
      cpuCores: specs.cpu_cores ?? null,
      memoryGb: specs.memory_gb ?? null,
      username: `atl-${instanceId.replaceAll('-', '').slice(-10)}`,
      ...this.secrets.createFor(instanceId),
    };
    return this.writers.once(turnOf(team_id), context, async (manager) => {
      await this.gate.holdOpen(manager, context.caller, { teamId: team_id, workspaceId });
      await requireRegion(manager, region_id);
      await requireMatch(manager, specs, region_id);
      await takeTurn(manager, turnOf(team_id));
      const instance = await this.instances.insert(manager, values, causeOf(context));
      await requireRoom(manager, instance);
      await this.events.changed(manager, instance);
      return this.view(manager, instance);
    });
  }

  async list({ team_id, include_ended, ...asked }: ListBaremetal, { caller }: CallContext): Promise<BaremetalPage> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    const { page, limit, offset } = pageWindow(asked, 1);
    const where = `team_id = $1${include_ended === 'true' ? '' : ` AND ${liveBaremetal}`}`;
    const { total, rows } = await readPage(this.statements, {
      from: `baremetal_instance WHERE ${where}`,
      order: 'created_at, instance_id',
      window: 'LIMIT $2 OFFSET $3',
      values: [team_id, limit, offset],
    });
    const instances = rows.map((raw) => this.instances.rowOf(raw));
    return { data: await this.views(this.dataSource.manager, instances), pagination: { page, limit, total } };
  }

  async get({ instance_id }: BaremetalPath, context: CallContext): Promise<BaremetalInstance> {
    return this.view(this.dataSource.manager, await this.find(instance_id, context, 'readTeam'));
  }

  /** Cancels a request, or releases a host. Repeated it changes nothing. */
  async end({ instance_id }: BaremetalPath, context: CallContext): Promise<BaremetalInstance> {
    await this.find(instance_id, context, 'useResources');
    return this.transactions.run(async (manager) => {
      const held = await this.instances.lock(manager, instance_id);
      if (!held) throw notFound('instance');
      const event = held.state === 'active' ? 'RELEASE' : 'CANCEL';
      await this.instances.move(manager, held, event, causeOf(context, event.toLowerCase()));
      return this.view(manager, await this.read(instance_id, manager));
    });
  }

  /** Whoever asks is written down, before the answer. */
  async credentials({ instance_id }: BaremetalPath, context: CallContext): Promise<BaremetalCredentials> {
    const instance = await this.find(instance_id, context, 'useResources');
    const { instanceId, nodeId, username, password, state } = instance;
    if (state !== 'active' || nodeId === null || password === null) {
      throw new AppError(
        'conflict',
        `The instance is ${statusOf(instance)}; credentials are available only while it is Active.`,
      );
    }
    const node = (await this.nodesOf(this.dataSource.manager, [instance])).get(nodeId);
    if (!node) throw notFound('instance');
    const { actor } = causeOf(context);
    await this.transactions.run((manager) =>
      manager.query(
        'INSERT INTO baremetal_credential_read (instance_id, actor, request_id, at) VALUES ($1, $2, $3, clock_timestamp())',
        [instanceId, actor, context.requestId],
      ),
    );
    this.logger.log(
      `Credentials of the bare-metal instance ${instanceId} read by ${actor}, request ${context.requestId}`,
    );
    return {
      host: node.host,
      port: node.port,
      username,
      ssh_password: this.secrets.openPassword({ instanceId, password }),
    };
  }

  private async find(
    instanceId: string,
    { caller }: CallContext,
    permission: Permission,
  ): Promise<BaremetalInstanceEntity> {
    const instance = await this.read(instanceId);
    requirePermission(caller, instance.teamId, permission, 'instance');
    return instance;
  }

  private async read(instanceId: string, manager?: EntityManager): Promise<BaremetalInstanceEntity> {
    const instance = await this.instances.find(instanceId, manager);
    if (!instance) throw notFound('instance');
    return instance;
  }

  private async view(manager: EntityManager, instance: BaremetalInstanceEntity): Promise<BaremetalInstance> {
    const [view] = await this.views(manager, [instance]);
    if (!view) throw notFound('instance');
    return view;
  }

  private async views(
    manager: EntityManager,
    instances: readonly BaremetalInstanceEntity[],
  ): Promise<BaremetalInstance[]> {
    return this.reader.views(manager, instances, await this.nodesOf(manager, instances));
  }

  private async nodesOf(
    manager: EntityManager,
    instances: readonly BaremetalInstanceEntity[],
  ): Promise<ReadonlyMap<string, BaremetalNodeEntity>> {
    const ids = instances.flatMap(({ nodeId }) => nodeId ?? []);
    const rows =
      ids.length > 0
        ? await manager.query<object[]>('SELECT * FROM baremetal_node WHERE node_id = ANY ($1)', [ids])
        : [];
    return new Map(rows.map((row) => this.nodes.rowOf(row)).map((node) => [node.nodeId, node]));
  }
}

/** Requests of one team are counted one after the other. */
function turnOf(teamId: string): string {
  return `baremetal ${teamId}`;
}
