import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Admission, AdmissionControl, LogInTrail } from './admission-control.js';
import { logInsOfTeamPerUser, usualConnectionLimits, type ConnectionLimits } from './connection-limits.js';
import { MinuteCounts } from './minute-counts.js';

/** A connection whose user was admitted to a pod, by SSH or of a terminal. */
export interface AuthenticatedConnection {
  readonly admission: Admission;
  /** Why it ended or ends, for the audit trail. */
  readonly reason: string;
  /** `reason` is told to whoever sits there. */
  end(reason: string): void;
}

const shareOne = 'Try again later, or share one SSH connection (ControlMaster).';

/**
 * The authenticated connections of this process, by SSH and of terminals: each recorded, and ended once its admission
 * is revoked.
 */
export class ConnectionRegistry {
  readonly #logger = new Logger(ConnectionRegistry.name);
  readonly #open = new Set<AuthenticatedConnection>();
  readonly #limits: ConnectionLimits;
  readonly #logInsOfUsers: MinuteCounts;
  readonly #logInsOfTeams: MinuteCounts;

  constructor(
    private readonly admissionControl: AdmissionControl,
    private readonly trail: LogInTrail,
    limits: Partial<ConnectionLimits> = {},
  ) {
    this.#limits = { ...usualConnectionLimits, ...limits };
    this.#logInsOfUsers = new MinuteCounts(this.#limits.logInsOfUser);
    this.#logInsOfTeams = new MinuteCounts(this.#limits.logInsOfUser * logInsOfTeamPerUser);
  }

  /** Why there is no room for another connection of this user, a sentence for them; null where there is. */
  refusalOf({ userId, teamId }: Admission): string | null {
    const { connections, connectionsOfTeam, connectionsOfUser } = this.#limits;
    if (this.#openOf(userId).length >= connectionsOfUser) {
      return `You have ${connectionsOfUser} open connections to pods, the maximum. Close one, then try again.`;
    }
    if (this.#logInsOfUsers.areTooMany(userId)) {
      return `You have logged in to pods ${this.#logInsOfUsers.atMost} times in a minute. ${shareOne}`;
    }
    if (this.#logInsOfTeams.areTooMany(teamId)) {
      return `Your team has logged in to pods ${this.#logInsOfTeams.atMost} times in a minute. ${shareOne}`;
    }
    const ofTeam = [...this.#open].filter(({ admission }) => admission.teamId === teamId).length;
    if (ofTeam >= connectionsOfTeam) {
      return `Your team has ${connectionsOfTeam} open connections to its pods, the maximum. Close one, then try again.`;
    }
    if (ofTeam < connections - this.#open.size) return null;
    return `Too many connections to pods are open, ${ofTeam} of them of your team. Close one of these, or try again later.`;
  }

  #openOf(userId?: string): AuthenticatedConnection[] {
    return [...this.#open].filter(({ admission }) => userId === undefined || admission.userId === userId);
  }

  /** Records a connection from now until `left` resolves, and returns then. Who cannot be recorded is not let in. */
  async register(connection: AuthenticatedConnection, address: string, left: Promise<void>): Promise<void> {
    const { podName: pod_name, userId: user_id, fingerprint } = connection.admission;
    const about = { door: fingerprint === null ? 'terminal' : 'ssh', pod_name, user_id, fingerprint, address };
    this.#open.add(connection);
    this.#logInsOfUsers.add(user_id);
    this.#logInsOfTeams.add(connection.admission.teamId);
    this.#logger.log({ message: 'Log-in to a pod', ...about });
    // For what has changed since the admission: a client may take its time between that and its first signature or
    // frame.
    void this.look(user_id);
    try {
      const logInId = await this.trail.began(connection.admission, address);
      await left;
      await this.trail.ended(logInId, connection.reason);
    } catch (error) {
      this.#logger.warn({ message: 'Cannot record a log-in to a pod; the connection is ended', ...about, err: error });
      connection.end('The log-in could not be recorded. Try again later.');
      await left;
    } finally {
      this.#open.delete(connection);
    }
    this.#logger.log({ message: 'Log-out of a pod', ...about, reason: connection.reason });
  }

  /** Looks again and again, for what no broadcast has told, until the signal is aborted. */
  async lookByTime(lookMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look();
      await delay(lookMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Ends the connections of those who may not stay; of this user alone where one is named. */
  async look(userId?: string): Promise<void> {
    const connections = this.#openOf(userId);
    if (connections.length === 0) return;
    try {
      const revoked = await this.admissionControl.revoked(connections.map(({ admission }) => admission));
      for (const connection of connections) {
        const reason = revoked.get(connection.admission);
        if (reason) connection.end(reason);
      }
    } catch (error) {
      this.#logger.warn({
        message: 'Cannot check who may stay connected to pods; connections stay open until the next check',
        err: error,
      });
    }
  }
}
