import type { Exit } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { Transactions } from '@atoll/database';
import { UsageTeller, type HeldUsage } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { IsNull, type EntityManager } from 'typeorm';
import { PodEntity } from '../model/pod.entity.js';
import { isLastRun } from '../model/run-states.js';
import { VmEntity } from '../model/vm.entity.js';
import { endOfRun } from './end-of-run.js';
import { heldOfPod, heldOfVm } from './held.js';

/**
 * From when until when the last run of a row was taken to run. No row where the last run never was. `since` is null
 * where it has been for longer than the history is kept.
 */
const seenRunning = `SELECT seen.at AS since, latest.at AS until
  FROM (
    SELECT id, from_state, at FROM machine_history
    WHERE machine = $1 AND instance = $2 AND (from_state = 'running' OR to_state IN ('pulling', 'starting'))
    ORDER BY id DESC LIMIT 1
  ) latest LEFT JOIN LATERAL (
    SELECT at FROM machine_history
    WHERE machine = $1 AND instance = $2 AND to_state = 'running' AND id < latest.id
    ORDER BY id DESC LIMIT 1
  ) seen ON true
  WHERE from_state = 'running'`;

/**
 * Corrects the end of what was billed, where a run had ended by itself before it was stopped, deleted or restarted, and
 * nobody had seen that yet: as after an outage of the platform or of the cluster.
 */
@Injectable()
export class LateEnds {
  constructor(
    private readonly transactions: Transactions,
    private readonly usage: UsageTeller,
  ) {}

  /**
   * Tells billing, once for each run, when the last run of a row ended by itself, where billing was told of a later
   * end. `row` has left `running`; `exit` is that of its last run. A pod is billed also between two runs: the end of
   * one counts where no other was to follow it.
   */
  async tell(row: PodEntity | VmEntity, exit: Exit | null): Promise<void> {
    if (!exit || row.endedAt || exit.at >= row.enteredAt) return;
    if (row instanceof PodEntity && !isLastRun(row, exit)) return;
    const held = row instanceof PodEntity ? heldOfPod(row, 0) : heldOfVm(row, 0);
    await this.transactions.run(async (manager) => {
      const at = await earlierEnd(manager, held, exit);
      if (!at || !(await isFirstToSee(manager, row, at))) return;
      await this.usage.tell(manager, podUsageTold, [{ ...held, at, mark: `${row.revision}.ended` }]);
    });
  }
}

async function earlierEnd(manager: EntityManager, { kind, id }: HeldUsage, exit: Exit): Promise<Date | undefined> {
  const [seen] = await manager.query<{ since: Date | null; until: Date }[]>(seenRunning, [kind, id]);
  const at = seen && endOfRun({ enteredAt: seen.since ?? exit.at }, exit);
  return at && at < seen.until ? at : undefined;
}

/** A pod that runs anew is billed anew. */
async function isFirstToSee(manager: EntityManager, row: PodEntity | VmEntity, endedAt: Date): Promise<boolean> {
  const values = { endedAt, isBilled: false };
  const still = { run: row.run, endedAt: IsNull() };
  const { affected } =
    row instanceof PodEntity
      ? await manager.update(PodEntity, { podId: row.podId, ...still }, values)
      : await manager.update(VmEntity, { instanceId: row.instanceId, ...still }, values);
  return affected === 1;
}
