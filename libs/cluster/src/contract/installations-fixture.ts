import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import { freePort } from '@atoll/testing';
import type { Capabilities } from '../cluster-driver.js';
import type { Hint } from '../observations.js';
import { greeting } from './doors-fixture.js';
import { codeOf, eventually, Installation, soon, wanted, type Lack } from './cluster-under-test-fixture.js';

export function installationLaws(here: () => Installation, capabilities: Capabilities, lacks: readonly Lack[]): void {
  it('is told from any other by an identity that stays', async () => {
    const identity = await here().driver.identify(soon());
    expect(identity).toMatch(/^\S+$/);
    await here().cluster.crash();
    await here().restart();
    expect(await eventually(() => here().driver.identify(soon()))).toBe(identity);
  });

  it('is well when it is checked, and says what it can do', async () => {
    const checks = await here().driver.check(soon());
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.map(({ name }) => name)).toContain('reachable');
  });

  it('never lists, sees, touches or removes what another installation has made', async () => {
    const theirs = new Installation(here().cluster);
    const pod = await theirs.startRunning(theirs.programs.serves);
    const volume = theirs.volume();
    await theirs.driver.makeVolume(volume, soon());
    const door = await theirs.open(theirs.door(pod, await freePort()));
    const before = [...(await theirs.listed())];

    expect(await here().listed()).toEqual([]);
    expect(await here().observePod(pod)).toEqual({ phase: 'absent' });
    expect(await here().observeDoor(door)).toEqual({ phase: 'absent' });
    for (const { ref } of [pod, door, volume]) await here().driver.remove(ref, soon());
    await here().driver.stopPod(pod.ref, 0, soon());
    const shell = { command: null, terminal: null, env: new Map<string, string>() };
    expect(await codeOf(here().driver.openShell(pod.ref, shell, soon()))).toBe('not_found');
    if (capabilities.connect) expect(await codeOf(here().driver.connect(pod.ref, 8080, soon()))).toBe('not_found');

    expect(await theirs.listed()).toEqual(before);
    expect(await eventually(() => greeting(here().cluster.publicHost, door.externalPort))).toBe(pod.podName);
    await theirs.leave();
  });

  it('lists all of its own, also what no process remembers', async () => {
    const pods = await Promise.all([1, 2, 3].map(() => here().startRunning(here().programs.idle)));
    await here().restart();
    const listed = await here().listed();
    expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(pods.map(({ ref }) => ref.id)));
    for (const ref of listed) await here().driver.remove(ref, soon());
    await eventually(async () => ((await here().listed()).length === 0 ? true : undefined));
  });

  it('hints at what changes, and says when it cannot any more', async () => {
    const hints: Hint[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const hint of here().driver.watch(stop.signal)) hints.push(hint);
    })();
    watching.catch(() => undefined);
    const pod = await eventually(async () => {
      const started = await here().startRunning(here().programs.idle);
      return hints.some(({ id }) => id === started.ref.id) ? started : void (await here().remove(started));
    });
    hints.length = 0;
    await here().driver.stopPod(pod.ref, 0, soon());
    await eventually(async () =>
      hints.some(({ id, run }) => id === pod.ref.id && run === pod.ref.run) ? true : undefined,
    );
    if (lacks.includes('broken watches')) stop.abort();
    else {
      await here().cluster.crash();
      expect(await codeOf(watching)).toBe('unreachable');
    }
    await here().remove(pod);
  });

  it('ends watching without an error when its reader gives up', async () => {
    const stop = new AbortController();
    const watching = here().driver.watch(stop.signal)[Symbol.asyncIterator]();
    const next = watching.next();
    stop.abort();
    expect((await next).done).toBe(true);
  });

  it('gives up a call soon after its signal is aborted, with a code that says so', async () => {
    expect(await codeOf(here().driver.observePods([here().ref('pod')], AbortSignal.abort()))).toBe('timeout');
    const signal = AbortSignal.timeout(1);
    await once(signal, 'abort');
    expect(await codeOf(here().driver.startPod(here().pod(here().programs.idle), wanted, signal))).toBe('timeout');
  });
}
