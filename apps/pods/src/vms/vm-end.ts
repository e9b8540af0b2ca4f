import type { Exit } from '@atoll/cluster';
import { backOffAfter, type RunEnd } from '../model/run-states.js';
import type { VmEntity } from '../model/vm.entity.js';

const shutDown = 'Its guest shut down by itself.';

/**
 * What follows when the guest of a VM has stopped by itself, at `nowMs` by the clock of the database; `exit` is null
 * where the VM was removed from outside.
 */
export function afterGuestEnd(
  vm: VmEntity,
  exit: Exit | null,
  firstBackOffMs: number,
  nowMs: number,
): RunEnd<VmEntity> {
  const endReason = reasonOf(exit);
  if (!vm.autoRestart) return { event: exit?.code === 0 ? 'COMPLETED' : 'FAILED', values: { endReason } };
  return { event: 'ENDED', values: { endReason, ...backOffAfter(vm, exit, firstBackOffMs, nowMs) } };
}

/**
 * What becomes of a VM that waits to start again when that is no longer wanted: what it would be without
 * `auto_restart`.
 */
export function afterEndWithoutRestart({ endReason }: VmEntity): { event: 'STOP' | 'FAILED'; message: string } {
  return { event: endReason === shutDown ? 'STOP' : 'FAILED', message: endReason ?? 'Its guest has ended.' };
}

function reasonOf(exit: Exit | null): string {
  if (!exit) return 'The VM was removed from outside the platform.';
  if (exit.reason) return exit.reason.slice(0, 400);
  if (exit.code === 0) return shutDown;
  return exit.outOfMemory === 'no' ? 'Its guest crashed.' : 'Its guest was killed: out of memory.';
}
