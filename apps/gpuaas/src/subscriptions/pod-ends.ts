import { Injectable } from '@nestjs/common';

const mostTeams = 10_000;

/**
 * When the pods service last said of a team that a pod of it is gone, to this process: a sign that it is at work, and
 * only needs its time. It has as much from the start of the process on, which may have been away.
 */
@Injectable()
export class PodEnds {
  private readonly heardAtMs = new Map<string, number>();
  private readonly startedAtMs = performance.now();

  heard(teamId: string): void {
    // In the order in which they were heard, so that the first is the oldest.
    this.heardAtMs.delete(teamId);
    this.heardAtMs.set(teamId, performance.now());
    const [oldest] = this.heardAtMs.keys();
    if (this.heardAtMs.size > mostTeams && oldest !== undefined) this.heardAtMs.delete(oldest);
  }

  /** Milliseconds since then, or since the start. */
  quietMs(teamId: string): number {
    return performance.now() - (this.heardAtMs.get(teamId) ?? this.startedAtMs);
  }
}
