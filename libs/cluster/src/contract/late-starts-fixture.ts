import { expect, it } from '@jest/globals';
import type { ClusterDriver } from '../cluster-driver.js';
import { ClusterError } from '../cluster-error.js';
import type { RunRef } from '../objects.js';
import type { RunSight } from '../observations.js';
import { codeOf, eventually, soon, wanted, type Installation, type Program } from './cluster-under-test-fixture.js';

interface Run {
  readonly ref: RunRef;
  start(isWanted: () => Promise<boolean>, by?: ClusterDriver): Promise<void>;
  observe(by?: ClusterDriver): Promise<RunSight>;
}

/** Of runs of pods or of VMs: what a driver asks before one of them begins. */
export function lateStartLaws(here: () => Installation, kind: 'pod' | 'vm'): void {
  const runOf = (program: Program): Run => {
    if (kind === 'pod') {
      const pod = here().pod(program);
      return {
        ref: pod.ref,
        start: (isWanted, by = here().driver) => by.startPod(pod, isWanted, soon()),
        observe: async (by = here().driver) => (await by.observePods([pod.ref], soon()))[0]!,
      };
    }
    const vm = here().vm(program);
    return {
      ref: vm.ref,
      start: (isWanted, by = here().driver) => by.startVm(vm, isWanted, soon()),
      observe: async (by = here().driver) => (await by.observeVms([vm.ref], soon()))[0]!,
    };
  };
  /** Requests the run, again and again as a caller does, until it has come so far. */
  const until = (run: Run, phase: RunSight['phase'], by?: ClusterDriver) =>
    eventually(async () => {
      await run.start(wanted, by);
      const sight = await run.observe(by);
      return sight.phase === phase ? sight : undefined;
    });

  it('asks whether a run is wanted when every process sees it, and nothing is left of one that is not', async () => {
    const run = runOf(here().programs.idle);
    const other = here().cluster.open(here().id);
    const seen = await eventually(async () => {
      const sights: RunSight[] = [];
      const isWanted = async () => {
        sights.push(await run.observe(other));
        return false;
      };
      await run.start(isWanted);
      return sights.at(0)?.phase;
    });
    expect(seen).not.toBe('absent');
    expect(await run.observe()).toEqual({ phase: 'absent' });
    expect(await here().listed()).not.toContainEqual(run.ref);
    await other.close();
  });

  it('starts nothing while it cannot be told whether a run is wanted, and starts it afterwards', async () => {
    const run = runOf(here().programs.idle);
    const unknown = () => Promise.reject(new ClusterError('unreachable', 'The database is away.'));
    const code = await eventually(() =>
      run.start(unknown).then(
        () => undefined,
        ({ code }: ClusterError) => code,
      ),
    );
    expect(code).toBe('unreachable');
    expect((await run.observe()).phase).toMatch(/^(absent|preparing)$/);
    if (kind === 'pod') {
      expect(await codeOf(here().driver.readLogs(run.ref, null, soon())[Symbol.asyncIterator]().next())).toBe(
        'not_found',
      );
    }
    expect((await until(run, 'running')).phase).toBe('running');
    await here().remove(run);
  });

  it('does not start again what another process has started while it asked, and what has ended since', async () => {
    const run = runOf(here().programs.exits(0));
    const other = here().cluster.open(here().id);
    const ended = await eventually(async () => {
      let sight: RunSight | undefined;
      const isWanted = async () => {
        sight = await until(run, 'ended', other);
        return true;
      };
      await run.start(isWanted);
      return sight;
    });
    expect(await run.observe()).toEqual(ended);
    await here().remove(run);
    await other.close();
  });

  it('asks nothing of a run that is there, and leaves it as it is', async () => {
    const run = runOf(here().programs.idle);
    await until(run, 'running');
    const before = await run.observe();
    await run.start(() => Promise.resolve(false));
    expect(await run.observe()).toEqual(before);
    await here().remove(run);
  });
}
