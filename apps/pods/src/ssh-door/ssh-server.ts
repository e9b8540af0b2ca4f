import { credentialsChanged, sshKeysChanged } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { Doorkeeper, LogInTrail } from './doorkeeper.js';
import { SshDoor } from './ssh-door.js';
import { SshHostKey } from './ssh-host-key.js';

/** The SSH door of this process: opened once the service runs, told of what changes about users, closed before the service stops. */
@Injectable()
export class SshServer implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #logger = new Logger(SshServer.name);
  #door: SshDoor | null = null;
  #stopListening: (() => void)[] = [];

  constructor(
    private readonly settings: PodsSettings,
    private readonly hostKey: SshHostKey,
    private readonly doorkeeper: Doorkeeper,
    private readonly trail: LogInTrail,
    private readonly rpc: Rpc,
  ) {}

  /** null while another process has the port. */
  get port(): number | null {
    return this.#door?.port ?? null;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { sshHost: host, sshPort } = this.settings;
    if (sshPort === 'off') return;
    const { doorkeeper, trail } = this;
    const door = (this.#door = new SshDoor({ host, port: Number(sshPort), hostKey: await this.hostKey.read(), doorkeeper, trail }));
    const look = ({ user_id }: { user_id: string }) => void door.look(user_id);
    this.#stopListening = [this.rpc.listen(credentialsChanged, look), this.rpc.listen(sshKeysChanged, look)];
    door
      .open()
      .catch((error: unknown) =>
        this.#logger.error({ message: 'Cannot open the SSH door; pods are not reached by SSH through this process', err: error }),
      );
  }

  async onModuleDestroy(): Promise<void> {
    for (const stop of this.#stopListening) stop();
    await this.#door?.close();
  }
}
