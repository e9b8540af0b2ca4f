import { ClusterError, DockerDriver, type ClusterDriver } from '@atoll/cluster';
import { newId, Statements } from '@atoll/database';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { Clusters } from './clusters.js';

const identifyMs = 10_000;

/**
 * One container engine on this host runs the pods of all GPU services. What it creates carries the installation's id, which is made once and kept in the
 * database: two platforms may share an engine.
 */
@Injectable()
export class DockerClusters extends Clusters implements OnModuleDestroy {
  #driver: Promise<DockerDriver> | null = null;

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super();
    if (!this.#socketPath) throw new Error('ATOLL_CLUSTER=docker needs ATOLL_DOCKER_SOCKETS, the path of the engine’s socket.');
  }

  get #socketPath(): string {
    return this.settings.dockerSockets.split(',')[0]?.trim() ?? '';
  }

  /** Throws `another_cluster` where another engine has taken the place of the one that this database knows at the socket. */
  driverOf(): Promise<ClusterDriver> {
    this.#driver ??= this.#open().catch((error: unknown) => {
      this.#driver = null;
      throw error;
    });
    return this.#driver;
  }

  publicHostOf(): Promise<string> {
    return Promise.resolve(this.settings.dockerPublicHost);
  }

  async #open(): Promise<DockerDriver> {
    const { dockerPublicHost: publicHost, doorImage } = this.settings;
    const address = { socketPath: this.#socketPath };
    const driver = new DockerDriver({ installationId: await this.#installationId(), address, publicHost, doorImage });
    try {
      await this.#requireSameEngine(await driver.identify(AbortSignal.timeout(identifyMs)));
      return driver;
    } catch (error) {
      await driver.close();
      throw error;
    }
  }

  async #installationId(): Promise<string> {
    const insertion = 'INSERT INTO installation (id, installation_id) VALUES (1, $1) ON CONFLICT DO NOTHING';
    await this.statements.query('installation.make', insertion, [newId()]);
    const query = 'SELECT installation_id FROM installation WHERE id = $1';
    const [row] = await this.statements.query<{ installation_id: string }>('installation.find', query, [1]);
    if (!row) throw new Error('The id of the installation was not kept.');
    return row.installation_id;
  }

  async #requireSameEngine(identity: string): Promise<void> {
    const insertion = 'INSERT INTO engine (socket_path, identity) VALUES ($1, $2) ON CONFLICT DO NOTHING';
    await this.statements.query('engine.keep', insertion, [this.#socketPath, identity]);
    const query = 'SELECT identity FROM engine WHERE socket_path = $1';
    const [row] = await this.statements.query<{ identity: string }>('engine.find', query, [this.#socketPath]);
    if (row?.identity !== identity)
      throw new ClusterError('another_cluster', 'Another container engine has taken the place of the one that ran the pods.');
  }

  async onModuleDestroy(): Promise<void> {
    const driver = await this.#driver?.catch(() => null);
    this.#driver = null;
    await driver?.close();
  }
}
