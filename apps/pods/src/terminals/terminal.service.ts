import type { CallContext } from '@atoll/contracts';
import type { LocateTerminal, OpenTerminal, TerminalPlace, TerminalTicket } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { TeamGate } from '@atoll/team-directory';
import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodReader } from '../pods/pod-reader.js';
import { PodsSettings } from '../pods-settings.js';
import { AdmissionControl } from '../log-ins/admission-control.js';
import { OpenConnections } from '../log-ins/open-connections.js';
import { TerminalDoor } from './terminal-door.js';
import { TerminalTickets } from './terminal-tickets.js';

/**
 * Terminals of pods, which have the admission control and the registry of connections of the SSH door.
 */
@Injectable()
export class TerminalsService implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #tickets: TerminalTickets;
  readonly #door: TerminalDoor;

  constructor(
    private readonly pods: PodReader,
    private readonly gate: TeamGate,
    private readonly admissionControl: AdmissionControl,
    registry: OpenConnections,
    sealer: Sealer,
    settings: PodsSettings,
  ) {
    this.#tickets = new TerminalTickets(sealer);
    this.#door = new TerminalDoor({
      host: settings.terminalHost,
      tickets: this.#tickets,
      registry,
      isStillAdmitted: async ({ podName, userId, credential }) =>
        credential !== null && (await admissionControl.admitUser(podName, userId, credential)) !== null,
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.#door.open();
  }

  async onModuleDestroy(): Promise<void> {
    await this.#door.close();
  }

  async open({ pod_name, columns, rows }: OpenTerminal, { caller }: CallContext): Promise<TerminalTicket> {
    const { teamId } = await this.pods.find(pod_name, caller, 'useResources');
    await this.gate.requireGrowth(caller, teamId, 'pod');
    // The role is asked for anew: what it was a moment ago opens nothing. An operator has none here.
    const admission =
      caller.kind === 'user' ? await this.admissionControl.admitUser(pod_name, caller.userId, caller.credential) : null;
    if (!admission)
      throw new AppError(
        'forbidden',
        'A terminal needs one of the roles team_owner, team_admin or member in the team.',
      );
    if (!admission.run) throw new AppError('conflict', 'The pod is not running. Start it, then open a terminal.');
    const { ticket, expiresAt } = this.#tickets.make({ admission, size: { columns, rows } }, this.#door.place);
    return { ticket, expires_at: expiresAt.toISOString() };
  }

  locate({ ticket, pod_name }: LocateTerminal): TerminalPlace {
    const place = this.#tickets.placeOf(ticket, pod_name);
    if (!place)
      throw new AppError(
        'unauthenticated',
        'The ticket is not valid: it is unknown, has expired or belongs to another pod.',
      );
    return place;
  }
}
