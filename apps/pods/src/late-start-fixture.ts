import type { ClusterDriver } from '@atoll/cluster';
import { jest } from '@jest/globals';

export interface LateStart {
  readonly run: number;
  readonly isWanted: () => Promise<boolean>;
  /** The cluster comes to it, and the process that has asked for it goes on; resolves when that is done. */
  goOn(): Promise<void>;
}

/**
 * The next start of a pod or VM that `work` comes to, whose process is frozen once the run is made and before it knows
 * whether that is wanted. Call what it resolves with to let it go on.
 */
export async function frozenStart(
  driver: ClusterDriver,
  kind: 'startPod' | 'startVm',
  work: () => Promise<void>,
): Promise<() => Promise<void>> {
  const begun = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const start = driver[kind].bind(driver) as (
    run: object,
    isWanted: LateStart['isWanted'],
    signal: AbortSignal,
  ) => Promise<void>;
  jest.spyOn(driver, kind).mockImplementationOnce((asked: object, isWanted, signal) => {
    const answer = async (): Promise<boolean> => {
      begun.resolve();
      await going.promise;
      return isWanted();
    };
    return start(asked, answer, signal);
  });
  const working = work();
  await begun.promise;
  return () => {
    going.resolve();
    return working;
  };
}

/** The next start of a pod or VM that `work` comes to, which takes as long as the spec lets it. */
export async function heldStart(
  driver: ClusterDriver,
  kind: 'startPod' | 'startVm',
  work: () => Promise<void>,
): Promise<LateStart> {
  const begun = Promise.withResolvers<LateStart>();
  const going = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const working = Promise.withResolvers<void>();
  const goOn = async () => {
    going.resolve();
    await Promise.all([over.promise, working.promise]);
  };
  const start = driver[kind].bind(driver) as (
    run: { ref: { run: number } },
    isWanted: LateStart['isWanted'],
    signal: AbortSignal,
  ) => Promise<void>;
  jest.spyOn(driver, kind).mockImplementationOnce(async (asked: { ref: { run: number } }, isWanted, signal) => {
    begun.resolve({ run: asked.ref.run, isWanted, goOn });
    await going.promise;
    await start(asked, isWanted, signal).finally(over.resolve);
  });
  void work().then(working.resolve, working.reject);
  return begun.promise;
}

/**
 * The process of a start learns by its clock, or when it next extends its claims, that its claim has run out: resolves
 * when it is told no more that its run is wanted.
 */
export async function toldNoMore({ isWanted }: LateStart): Promise<void> {
  const isTold = () =>
    isWanted().then(
      () => true,
      () => false,
    );
  while (await isTold()) await new Promise((resolve) => setTimeout(resolve, 20));
}
