import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Admission, AdmissionControl, LogInTrail } from './admission-control.js';
import { logInsOfTeamPerUser, usualGuestLimits, type GuestLimits } from './limits.js';
import { MinuteCounts } from './minute-counts.js';

/** A connection of somebody who was let into a pod, through whichever door. */
export interface Guest {
  readonly admission: Admission;
  /** Why it ended or ends, for the audit trail. */
  readonly reason: string;
  /** `reason` is told to whoever sits there. */
  end(reason: string): void;
}

const shareOne = 'Try again later, or share one SSH connection (ControlMaster).';

/** Who is in, through all doors of this process: each recorded, and looked at again for whether they may stay. */
export class GuestBook {
  readonly #logger = new Logger(GuestBook.name);
  readonly #guests = new Set<Guest>();
  readonly #limits: GuestLimits;
  readonly #logInsOfUsers: MinuteCounts;
  readonly #logInsOfTeams: MinuteCounts;

  constructor(
    private readonly admissionControl: AdmissionControl,
    private readonly trail: LogInTrail,
    limits: Partial<GuestLimits> = {},
  ) {
    this.#limits = { ...usualGuestLimits, ...limits };
    this.#logInsOfUsers = new MinuteCounts(this.#limits.logInsOfUser);
    this.#logInsOfTeams = new MinuteCounts(this.#limits.logInsOfUser * logInsOfTeamPerUser);
  }

  /** Why there is no room for another connection of this guest, a sentence for them; null where there is. */
  refusalOf({ userId, teamId }: Admission): string | null {
    const { connections, connectionsOfTeam, connectionsOfUser } = this.#limits;
    if (this.#guestsOf(userId).length >= connectionsOfUser) {
      return `You have ${connectionsOfUser} open connections to pods, the maximum. Close one, then try again.`;
    }
    if (this.#logInsOfUsers.areTooMany(userId)) {
      return `You have logged in to pods ${this.#logInsOfUsers.atMost} times in a minute. ${shareOne}`;
    }
    if (this.#logInsOfTeams.areTooMany(teamId)) {
      return `Your team has logged in to pods ${this.#logInsOfTeams.atMost} times in a minute. ${shareOne}`;
    }
    const ofTeam = [...this.#guests].filter(({ admission }) => admission.teamId === teamId).length;
    if (ofTeam >= connectionsOfTeam) {
      return `Your team has ${connectionsOfTeam} open connections to its pods, the maximum. Close one, then try again.`;
    }
    if (ofTeam < connections - this.#guests.size) return null;
    return `Too many connections to pods are open, ${ofTeam} of them of your team. Close one of these, or try again later.`;
  }

  #guestsOf(userId?: string): Guest[] {
    return [...this.#guests].filter(({ admission }) => userId === undefined || admission.userId === userId);
  }

  /** Records a guest from now until `left` resolves, and returns then. Who cannot be recorded is not let in. */
  async enter(guest: Guest, address: string, left: Promise<void>): Promise<void> {
    const { podName: pod_name, userId: user_id, fingerprint } = guest.admission;
    const about = { door: fingerprint === null ? 'terminal' : 'ssh', pod_name, user_id, fingerprint, address };
    this.#guests.add(guest);
    this.#logInsOfUsers.add(user_id);
    this.#logInsOfTeams.add(guest.admission.teamId);
    this.#logger.log({ message: 'Log-in to a pod', ...about });
    // For what has changed since the admission: a client may take its time between that and its first signature or
    // frame.
    void this.look(user_id);
    try {
      const logInId = await this.trail.began(guest.admission, address);
      await left;
      await this.trail.ended(logInId, guest.reason);
    } catch (error) {
      this.#logger.warn({ message: 'Cannot record a log-in to a pod; the connection is ended', ...about, err: error });
      guest.end('The log-in could not be recorded. Try again later.');
      await left;
    } finally {
      this.#guests.delete(guest);
    }
    this.#logger.log({ message: 'Log-out of a pod', ...about, reason: guest.reason });
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
    const guests = this.#guestsOf(userId);
    if (guests.length === 0) return;
    try {
      const revoked = await this.admissionControl.revoked(guests.map(({ admission }) => admission));
      for (const guest of guests) {
        const reason = revoked.get(guest.admission);
        if (reason) guest.end(reason);
      }
    } catch (error) {
      this.#logger.warn({
        message: 'Cannot check who may stay connected to pods; connections stay open until the next check',
        err: error,
      });
    }
  }
}
