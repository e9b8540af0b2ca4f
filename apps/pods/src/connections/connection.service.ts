import type { CallContext, ConnectionPod, ConnectionSsh, HoldingTeam, PodConnections } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { DoorTerms } from '../exposures/exposure.entity.js';
import { urlOf } from '../exposures/exposure-view.js';
import { podStatus } from '../pods/pod-view.js';
import { PodsSettings } from '../pods-settings.js';
import { SshServer } from '../ssh-door/ssh-server.js';

interface Service extends DoorTerms {
  serviceId: string;
  serviceName: string;
  publicHost: string;
  state: string;
}

interface Row {
  subscription_id: string;
  pod_name: string;
  state: string;
  services: Service[] | null;
}

/** How the pods of a team are reached. */
@Injectable()
export class ConnectionsService {
  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
    private readonly sshServer: SshServer,
  ) {}

  async read({ team_id }: HoldingTeam, { caller }: CallContext): Promise<PodConnections> {
    if (caller.kind !== 'system') throw new AppError('forbidden', 'Only a service may call this operation.');
    const rows = await this.statements.query<Row>('connections.read', readQuery, [team_id]);
    return { data: rows.map((row) => ({ subscription_id: row.subscription_id, ...connectionOf(row, this.#sshOf(row)) })) };
  }

  /** One door leads into all pods; null where it is shut, and to a pod that does not run. */
  #sshOf({ pod_name: username, state }: Row): ConnectionSsh | null {
    const { sshHost, sshPort, sshPublicHost } = this.settings;
    // Port 0 is any free one.
    const port = Number(sshPort) || this.sshServer.port;
    if (state !== 'running' || sshPort === 'off' || !port) return null;
    const host = sshPublicHost ?? (isUnspecified(sshHost) ? '127.0.0.1' : sshHost);
    return { host, port, username, command: `ssh -p ${port} ${username}@${host}` };
  }
}

/** An address to listen on, and none to connect to. */
function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

/** A service has its address once it is open. */
function connectionOf({ pod_name, state, services }: Row, ssh: ConnectionSsh | null): ConnectionPod {
  return {
    pod_name,
    status: podStatus(state),
    ssh,
    services: (services ?? []).map(({ serviceId, serviceName, publicHost, protocol, isSsl, externalPort, state: of }) => ({
      service_id: serviceId,
      service_name: serviceName,
      url: of === 'active' || of === 'updating' ? urlOf(protocol, isSsl, publicHost, externalPort) : null,
    })),
  };
}

const readQuery = `SELECT subscription_id, pod_name, pod.state, (
    SELECT json_agg(json_build_object('serviceId', service_id::text, 'serviceName', service_name, 'publicHost', public_host, 'protocol', protocol,
      'isSsl', is_ssl, 'externalPort', external_port, 'state', exposure.state) ORDER BY service_id)
    FROM exposure WHERE exposure.pod_id = pod.pod_id AND exposure.state NOT IN ('deleting', 'deleted')
  ) AS services
  FROM pod WHERE team_id = $1 AND state <> 'deleted' ORDER BY created_at, pod_id`;
