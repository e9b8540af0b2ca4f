import { expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { codeOf, eventually, owner, soon, wanted, type Installation } from './cluster-under-test-fixture.js';

export function podLaws(here: () => Installation): void {
  it('runs a pod, and makes it once however often it is requested', async () => {
    const { programs, driver } = here();
    const pod = here().pod(programs.idle);
    await eventually(() => Promise.all(Array.from({ length: 5 }, () => driver.startPod(pod, wanted, soon()))));
    expect(await here().start(pod)).toMatchObject({ phase: 'running', startedAt: expect.any(Date), trouble: null });
    await driver.startPod(pod, wanted, soon());
    expect((await here().listed()).filter(({ id }) => id === pod.ref.id)).toEqual([pod.ref]);
    await here().remove(pod);
  });

  it('tells with which code a run ended, and starts it no second time', async () => {
    const pod = here().pod(here().programs.exits(3));
    await here().start(pod, 'ended');
    await here().driver.startPod(pod, wanted, soon());
    expect(await here().seen(pod, 'ended')).toMatchObject({
      exit: { code: 3, outOfMemory: 'no', at: expect.any(Date) },
    });
    await here().remove(pod);
  });

  it('ends a run by TERM, and by KILL after the grace', async () => {
    const [gentle, stubborn] = await Promise.all([
      here().startRunning(here().programs.idle),
      here().startSpeaking(here().programs.stubborn),
    ]);
    await Promise.all([
      here().driver.stopPod(gentle.ref, 20_000, soon()),
      here().driver.stopPod(stubborn.ref, 1_000, soon()),
    ]);
    expect((await here().seen(stubborn, 'ended')).exit.code).toBe(137);
    expect((await here().seen(gentle, 'ended')).exit.code).not.toBe(137);
    await here().driver.stopPod(gentle.ref, 0, soon());
    await here().remove(gentle, stubborn);
  });

  it('takes repeated requests to end a run while it is ending', async () => {
    const pod = await here().startSpeaking(here().programs.stubborn);
    for (let times = 0; times < 5; times += 1) await here().driver.stopPod(pod.ref, 2_000, soon());
    expect((await here().observePod(pod)).phase).toMatch(/^(stopping|ended)$/);
    await here().seen(pod, 'ended');
    await here().remove(pod);
  });

  it('says that an image does not exist, for as long as it is asked', async () => {
    const pod = here().pod(here().programs.missingImage);
    const sight = await eventually(async () => {
      await here().driver.startPod(pod, wanted, soon());
      const now = await here().observePod(pod);
      return now.phase === 'preparing' && now.trouble ? now : undefined;
    });
    expect(sight.trouble?.code).toBe('image_not_found');
    await here().driver.remove(pod.ref, soon());
    expect(await here().observePod(pod)).toEqual({ phase: 'absent' });
  });

  it('lets go of a run that was requested and then is not wanted', async () => {
    const pod = here().pod(here().programs.missingImage);
    await here().driver.startPod(pod, wanted, soon());
    await here().driver.stopPod(pod.ref, 0, soon());
    expect((await here().observePod(pod)).phase).toMatch(/^(absent|ended)$/);
    await here().driver.remove(pod.ref, soon());
  });

  it('removes a run in any state, and nothing is left of it', async () => {
    const [running, ended] = [
      await here().startSpeaking(here().programs.stubborn),
      here().pod(here().programs.exits(0)),
    ];
    await here().start(ended, 'ended');
    await here().remove(running, ended, { ref: here().ref('pod') });
    for (const pod of [running, ended]) {
      expect(await here().observePod(pod)).toEqual({ phase: 'absent' });
      expect(await codeOf(here().driver.readLogs(pod.ref, null, soon())[Symbol.asyncIterator]().next())).toBe(
        'not_found',
      );
      await here().driver.remove(pod.ref, soon());
    }
  });

  it('observes many in the order in which they are asked for', async () => {
    const pods = await Promise.all([1, 2, 3].map(() => here().startRunning(here().programs.idle)));
    const absent = Array.from({ length: 20 }, () => here().ref('pod'));
    const refs = [...absent.slice(0, 9), pods[2]!.ref, ...absent.slice(9), pods[0]!.ref, pods[1]!.ref];
    const sights = await here().driver.observePods(refs, soon());
    const expected = refs.map((ref) => (absent.includes(ref) ? 'absent' : 'running'));
    expect(sights.map(({ phase }) => phase)).toEqual(expected);
    await here().remove(...pods);
  });

  it('starts the next run of a pod while the last one is still there', async () => {
    const first = await here().startRunning(here().programs.idle);
    const second = await here().startRunning(here().programs.idle, {
      ...first,
      ref: { ...first.ref, run: first.ref.run + 1 },
    });
    await here().remove(first);
    expect((await here().observePod(second)).phase).toBe('running');
    await here().remove(second);
  });

  it('sees what was stopped or removed by hand', async () => {
    const [stopped, removed] = await Promise.all([
      here().startRunning(here().programs.idle),
      here().startRunning(here().programs.idle),
    ]);
    await here().cluster.stopByHand(here().id, stopped.ref);
    await here().cluster.removeByHand(here().id, removed.ref);
    await here().seen(stopped, 'ended');
    await here().seen(removed, 'absent');
    await here().start(removed);
    await here().remove(stopped, removed);
  });

  it('lets pods of a workspace reach each other by name, and no others', async () => {
    const { dials, serves } = here().programs;
    if (!dials) return;
    const ours = owner();
    const server = await here().startRunning(serves, { owner: ours });
    const exitOf = async (of = ours) => {
      const pod = here().pod(dials(server.podName, 8080), { owner: of });
      await here().start(pod, 'ended');
      const { exit } = await here().seen(pod, 'ended');
      await here().remove(pod);
      return exit.code;
    };
    await eventually(async () => ((await exitOf()) === 0 ? true : undefined));
    expect(await exitOf({ ...ours, workspaceId: randomUUID() })).toBe(1);
    await here().remove(server);
  });
}
