import { onceAvailable } from '@atoll/database';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { AdmissionControl } from '../log-ins/admission-control.js';
import { OpenConnections } from '../log-ins/open-connections.js';
import { SshDoor } from './ssh-door.js';
import { SshHostKey } from './ssh-host-key.js';

/** The SSH door of this process: opened once the service runs, closed before the service stops. */
@Injectable()
export class SshServer implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #logger = new Logger(SshServer.name);
  #door: SshDoor | null = null;

  constructor(
    private readonly settings: PodsSettings,
    private readonly hostKey: SshHostKey,
    private readonly admissionControl: AdmissionControl,
    private readonly registry: OpenConnections,
  ) {}

  /** null while another process has the port. */
  get port(): number | null {
    return this.#door?.port ?? null;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { sshHost: host, sshPort, sshFailedLogIns: failuresOfNetwork } = this.settings;
    if (sshPort === 'off') return;
    const { admissionControl, registry } = this;
    const door = (this.#door = new SshDoor({
      host,
      port: Number(sshPort),
      hostKey: await onceAvailable(() => this.hostKey.read()),
      admissionControl,
      registry,
      limits: { failuresOfNetwork },
    }));
    door.open().catch((error: unknown) =>
      this.#logger.error({
        message: 'Cannot open the SSH port; this process offers no SSH access to pods',
        err: error,
      }),
    );
  }

  async onModuleDestroy(): Promise<void> {
    await this.#door?.close();
  }
}
