import { randomUUID } from 'node:crypto';
import type { TerminalSize } from '@atoll/cluster';
import { tooManyRequests } from '@atoll/errors';
import type { Sealer } from '@atoll/seal';
import { SealBroken, UnknownSealKey } from '@atoll/seal';
import type { Admission } from '../log-ins/admission-control.js';

export interface TerminalRequest {
  readonly admission: Admission;
  readonly size: TerminalSize;
}

export interface Place {
  readonly host: string;
  readonly port: number;
}

interface Content extends Place {
  readonly id: string;
  readonly pod: string;
  readonly untilMs: number;
}

interface Waiting extends TerminalRequest {
  readonly untilMs: number;
}

const lifeMs = 30_000;
const waitingAtMost = 1_000;
const waitingOfUser = 20;
const purpose = 'pods.terminal-ticket';

/**
 * Tickets to terminals. What a ticket opens stays in the replica that made it, which is named in the ticket, sealed:
 * every replica can read where it leads, its holder reads and changes nothing.
 */
export class TerminalTickets {
  readonly #waiting = new Map<string, Waiting>();

  constructor(
    private readonly sealer: Sealer,
    private readonly now: () => number = Date.now,
  ) {}

  /**
   * Throws `too_many_requests` where the user has too many unused, and where the team has as many as are left: so those
   * that have many leave room for those that have few.
   */
  make(request: TerminalRequest, place: Place): { ticket: string; expiresAt: Date } {
    this.#dropExpired();
    const { userId, teamId, podName } = request.admission;
    const waiting = [...this.#waiting.values()].map(({ admission }) => admission);
    const ofUser = waiting.filter((admission) => admission.userId === userId).length;
    const ofTeam = waiting.filter((admission) => admission.teamId === teamId).length;
    if (ofUser >= waitingOfUser || ofTeam >= waitingAtMost - waiting.length) {
      throw tooManyRequests(lifeMs / 1_000);
    }
    const untilMs = this.now() + lifeMs;
    const id = randomUUID();
    this.#waiting.set(id, { ...request, untilMs });
    const content: Content = { ...place, id, pod: podName, untilMs };
    return { ticket: this.sealer.seal(JSON.stringify(content), purpose), expiresAt: new Date(untilMs) };
  }

  /** Where a ticket leads; null for a forged or expired one, and for that of another pod. */
  placeOf(ticket: string, podName: string): Place | null {
    const content = this.#read(ticket, podName);
    return content && { host: content.host, port: content.port };
  }

  /** What a ticket of this replica opens, once. null for any other. */
  redeem(ticket: string, podName: string): TerminalRequest | null {
    this.#dropExpired();
    const content = this.#read(ticket, podName);
    const waiting = content && this.#waiting.get(content.id);
    if (!waiting) return null;
    this.#waiting.delete(content.id);
    return waiting;
  }

  #read(ticket: string, podName: string): Content | null {
    try {
      const content = JSON.parse(this.sealer.open(ticket, purpose).toString()) as Content;
      return content.pod === podName && content.untilMs > this.now() ? content : null;
    } catch (error) {
      if (error instanceof SealBroken || error instanceof UnknownSealKey) return null;
      throw error;
    }
  }

  #dropExpired(): void {
    const nowMs = this.now();
    // In the order in which they were made, which is that in which they expire.
    for (const [id, { untilMs }] of this.#waiting) {
      if (untilMs > nowMs) return;
      this.#waiting.delete(id);
    }
  }
}
