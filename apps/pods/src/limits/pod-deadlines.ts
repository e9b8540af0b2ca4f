import { Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DatabaseClock } from '../clock/database-clock.js';
import { writePlatformLine } from '../logs/platform-lines.js';
import { PodEntity } from '../model/pod.entity.js';
import { warnMs } from './idle-looks.js';
import { minutes } from './minutes.js';

/** The longest durations of pods. */
@Injectable()
export class PodDeadlines {
  constructor(
    private readonly transactions: Transactions,
    private readonly clock: DatabaseClock,
  ) {}

  /**
   * Milliseconds until the pod must be looked at again for its longest duration; 0: that is over. Where it ends within
   * ten minutes, the log of the pod says so, once for each start.
   */
  async nextLookMs(pod: PodEntity): Promise<number> {
    if (!pod.stopsAt) return Infinity;
    const leftMs = pod.stopsAt.getTime() - (await this.clock.nowMs());
    if (leftMs <= 0) return 0;
    if (leftMs > warnMs) return leftMs - warnMs;
    if (!pod.isStopWarned) await this.warn(pod, pod.stopsAt);
    return leftMs;
  }

  private async warn({ podId, start, maxDurationMinutes }: PodEntity, stopsAt: Date): Promise<void> {
    await this.transactions.run(async (manager) => {
      const { affected } = await manager.update(
        PodEntity,
        { podId, start, isStopWarned: false },
        { isStopWarned: true },
      );
      if (affected === 0) return;
      const message = `The pod will be stopped at ${stopsAt.toISOString()}, at the end of its maximum duration of ${minutes(maxDurationMinutes ?? 0)}.`;
      await writePlatformLine(manager, podId, message);
    });
  }
}
