import { sshKeysChanged } from '@atoll/contracts/pods';
import { credentialsChanged } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { AdmissionControl, LogInTrail } from './admission-control.js';
import { ConnectionRegistry } from './connection-registry.js';

/** Between two looks at who may stay, for what no broadcast has told. */
const lookMs = 5_000;

/** The open connections of this process, which follow what changes about users. */
@Injectable()
export class OpenConnections extends ConnectionRegistry implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #closed = new AbortController();
  #stopListening: (() => void)[] = [];

  constructor(
    admissionControl: AdmissionControl,
    trail: LogInTrail,
    private readonly rpc: Rpc,
    { connections, connectionsPerTeam, connectionsPerUser, logInsPerUser }: PodsSettings,
  ) {
    super(admissionControl, trail, {
      connections,
      connectionsOfTeam: connectionsPerTeam,
      connectionsOfUser: connectionsPerUser,
      logInsOfUser: logInsPerUser,
    });
  }

  onApplicationBootstrap(): void {
    const look = ({ user_id }: { user_id: string }) => void this.look(user_id);
    this.#stopListening = [this.rpc.listen(credentialsChanged, look), this.rpc.listen(sshKeysChanged, look)];
    void this.lookByTime(lookMs, this.#closed.signal);
  }

  onModuleDestroy(): void {
    this.#closed.abort();
    for (const stop of this.#stopListening) stop();
  }
}
