import { clusterChanged, clusters, type ClusterChanged } from '@atoll/contracts/gpuaas';
import { newId, Statements } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import type { ClusterEntity } from '../model/cluster.entity.js';

const askMs = 4_000;

/** The clusters as the gpuaas service tells of them; one that it has not told of yet is asked for once. */
@Injectable()
export class ClusterRows {
  constructor(
    private readonly statements: Statements,
    private readonly rpc: Rpc,
  ) {}

  @OnEvent(clusterChanged, { consumer: 'clusters' })
  onChanged(cluster: ClusterChanged, { manager }: EventDelivery): Promise<void> {
    return keep((query, values) => manager.query(query, values), cluster);
  }

  /** `setting`: what is known must be at least as new. Throws `not_found` where there is no such GPU service. */
  async read(gpuaasId: string, setting = 1): Promise<ClusterEntity> {
    const known = await this.find(gpuaasId);
    if (known && Number(known.setting) >= setting) return known;
    const cluster = await this.rpc.call(
      clusters.lookUp,
      { gpuaas_id: gpuaasId },
      systemContext('pods', { deadlineMs: askMs }),
    );
    await keep((query, values) => this.statements.query(query, values), cluster);
    const found = await this.find(gpuaasId);
    if (!found) throw new Error('The row of a cluster was not stored.');
    return found;
  }

  /** The identity that is kept for this setting of the cluster: the first one, or none where it was set anew. */
  async keepIdentity({ gpuaasId, setting }: ClusterEntity, identity: string): Promise<string | undefined> {
    const query = `UPDATE cluster SET identity = coalesce(identity, $3) WHERE gpuaas_id = $1 AND setting = $2 RETURNING identity`;
    const rows = await this.statements.query<{ identity: string }>(query, [gpuaasId, setting, identity]);
    return rows[0]?.identity;
  }

  /** Made once and kept in the database: two platforms may share an engine. */
  async installationId(): Promise<string> {
    const insertion = 'INSERT INTO installation (id, installation_id) VALUES (1, $1) ON CONFLICT DO NOTHING';
    await this.statements.query(insertion, [newId()]);
    const query = 'SELECT installation_id FROM installation WHERE id = $1';
    const [row] = await this.statements.query<{ installation_id: string }>(query, [1]);
    if (!row) throw new Error('The id of the installation was not kept.');
    return row.installation_id;
  }

  private async find(gpuaasId: string): Promise<ClusterEntity | undefined> {
    const rows = await this.statements.query<ClusterEntity>(findQuery, [gpuaasId]);
    return rows[0];
  }
}

const findQuery = `SELECT gpuaas_id AS "gpuaasId", driver, public_host AS "publicHost", socket, url, door_image AS "doorImage", sealed_tls AS "sealedTls",
    is_unreachable AS "isUnreachable", setting, revision, identity
  FROM cluster WHERE gpuaas_id = $1`;

/** Events may come late, twice or in any order. Another setting may mean another engine. */
const keepQuery = `INSERT INTO cluster (gpuaas_id, driver, public_host, socket, url, door_image, sealed_tls, is_unreachable, setting, revision)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
  ON CONFLICT (gpuaas_id) DO UPDATE SET driver = excluded.driver, public_host = excluded.public_host, socket = excluded.socket, url = excluded.url,
    door_image = excluded.door_image, sealed_tls = excluded.sealed_tls, is_unreachable = excluded.is_unreachable, setting = excluded.setting,
    revision = excluded.revision, identity = CASE WHEN cluster.setting = excluded.setting THEN cluster.identity END
  WHERE cluster.revision < excluded.revision`;

async function keep(
  run: (query: string, values: unknown[]) => Promise<unknown>,
  cluster: ClusterChanged,
): Promise<void> {
  const { gpuaas_id, driver, public_host, socket, url, door_image, sealed_tls, is_unreachable, setting, revision } =
    cluster;
  await run(keepQuery, [
    gpuaas_id,
    driver,
    public_host,
    socket,
    url,
    door_image,
    sealed_tls,
    is_unreachable,
    setting,
    revision,
  ]);
}
