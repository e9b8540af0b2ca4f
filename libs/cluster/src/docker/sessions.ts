import { fairShare } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';

interface SessionLimits {
  readonly sessions: number;
  /** Less where most are open (`fairShare`), so that those that have many leave room for others. */
  readonly sessionsOfTeam: number;
}

const usualLimits: SessionLimits = { sessions: 1_024, sessionsOfTeam: 256 };

/**
 * What people hold open in pods of one engine for as long as they like: shells, and the helpers of forwarded
 * connections. Each is a stream of the engine, counted apart from those that the platform needs.
 */
export class Sessions {
  /** By team. */
  readonly #open = new Map<string, number>();
  #ofAll = 0;

  constructor(private readonly limits: SessionLimits = usualLimits) {}

  /** Returns what ends the session; to call it again does nothing. Throws `no_space` where the team has too many. */
  begin(teamId: string): () => void {
    const ofTeam = this.#open.get(teamId) ?? 0;
    const { sessions, sessionsOfTeam } = this.limits;
    if (ofTeam >= fairShare({ all: sessions, free: sessions - this.#ofAll, most: sessionsOfTeam })) {
      const most = `The team has ${ofTeam} sessions in pods of this cluster, the most that it may have now.`;
      throw new ClusterError('no_space', `${most} End one, or try again later.`);
    }
    this.#count(teamId, 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#count(teamId, -1);
      isOpen = false;
    };
  }

  #count(teamId: string, more: 1 | -1): void {
    this.#ofAll += more;
    const ofTeam = (this.#open.get(teamId) ?? 0) + more;
    if (ofTeam > 0) this.#open.set(teamId, ofTeam);
    else this.#open.delete(teamId);
  }
}
