import { requireService, type CallContext } from '@atoll/contracts';
import type { ConnectionPod, HoldingTeam } from '@atoll/contracts/gpuaas';
import type { FindConnections, PodConnections } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { Clusters } from '../cluster/clusters.js';
import type { DoorTerms } from '../model/exposure.entity.js';
import { urlOf } from '../exposures/exposure-view.js';
import { runStatus } from '../model/run-states.js';
import { PodsSettings } from '../pods-settings.js';
import { SshServer } from '../ssh-door/ssh-server.js';

interface Service extends Omit<DoorTerms, 'port'> {
  serviceId: string;
  serviceName: string;
  publicHost: string;
  state: string;
}

interface Row {
  subscription_id: string;
  pod_name: string;
  state: string;
  gpuaas_id: string;
  services: Service[] | null;
}

/** How the pods of a team are reached. */
@Injectable()
export class ConnectionsService {
  constructor(
    private readonly statements: Statements,
    private readonly clusters: Clusters,
    private readonly teams: TeamDirectory,
    private readonly settings: PodsSettings,
    private readonly sshServer: SshServer,
  ) {}

  async read({ team_id }: HoldingTeam, { caller }: CallContext): Promise<PodConnections> {
    requireService(caller);
    return this.ofTeam(team_id);
  }

  /** As `read`, for a member. */
  async readAsMember({ team_id, subscription_id }: FindConnections, { caller }: CallContext): Promise<PodConnections> {
    await this.teams.teamFor(caller, team_id, 'useResources');
    return this.ofTeam(team_id, subscription_id);
  }

  private async ofTeam(team_id: string, subscription_id?: string): Promise<PodConnections> {
    const rows = await this.statements.query<Row>(readQuery, [team_id, subscription_id ?? null]);
    const gpuaasIds = [...new Set(rows.map(({ gpuaas_id }) => gpuaas_id))];
    const capabilities = new Map(
      await Promise.all(gpuaasIds.map(async (id) => [id, await this.clusters.capabilitiesOf(id)] as const)),
    );
    const hasShell = ({ gpuaas_id }: Row) => capabilities.get(gpuaas_id)?.shell === 'exec';
    return {
      data: rows.map((row) => ({
        subscription_id: row.subscription_id,
        ...connectionOf(row),
        ssh: hasShell(row) ? this.sshOf(row) : null,
      })),
    };
  }

  /** By the SSH door, where the pod runs. */
  private sshOf({ pod_name, state }: Row): ConnectionPod['ssh'] {
    const { sshPort, sshPublicHost: host } = this.settings;
    // Port 0 is any free one.
    const port = Number(sshPort) || this.sshServer.port;
    if (sshPort === 'off' || !port || runStatus(state) !== 'running') return null;
    return { host, port, username: pod_name, command: `ssh -p ${port} ${pod_name}@${host}` };
  }
}

/** A service has its address once it is open. */
function connectionOf({ pod_name, state, services }: Row): Omit<ConnectionPod, 'ssh'> {
  return {
    pod_name,
    status: runStatus(state),
    services: (services ?? []).map((service) => ({
      service_id: service.serviceId,
      service_name: service.serviceName,
      url: service.state === 'active' || service.state === 'updating' ? urlOf(service) : null,
    })),
  };
}

const readQuery = `SELECT subscription_id, pod_name, pod.state, gpuaas_id, (
    SELECT json_agg(json_build_object('serviceId', service_id::text, 'serviceName', service_name, 'publicHost', public_host, 'protocol', protocol,
      'isSsl', is_ssl, 'externalPort', external_port, 'state', exposure.state) ORDER BY service_id)
    FROM exposure WHERE exposure.pod_id = pod.pod_id AND exposure.state NOT IN ('deleting', 'deleted')
  ) AS services
  FROM pod WHERE team_id = $1 AND ($2::bigint IS NULL OR subscription_id = $2) AND state <> 'deleted' ORDER BY created_at, pod_id`;
