import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pods } from '@atoll/contracts/pods';
import { ClusterWatch } from '../watch/cluster-watch.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterAll(() => fixture.stop());

describe('a pod whose process ends by itself', () => {
  it.each([
    ['crash', 'always', 1, 'Its process ended with exit code 1.'],
    ['exit-0', 'always', 0, 'Its process ended with exit code 0.'],
    ['oom', 'on_failure', 137, 'Its process was killed: out of memory.'],
  ] as const)(
    '(%s) runs again where its policy is %s, after a back-off, and shows why',
    async (name, restart, exit_code, reason) => {
      const pod = await fixture.running(team, { name, restart });
      const again = await fixture.untilIs(pod, ({ restarts }) => restarts >= 1);
      expect(again).toMatchObject({ exit_code });
      const [{ end_reason } = {}] = await fixture.query<{ end_reason: string }>(
        'SELECT end_reason FROM pod WHERE pod_id = $1',
        [pod.pod_id],
      );
      expect(end_reason).toBe(reason);
      await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
      await fixture.untilDeleted(pod);
    },
  );

  it.each([
    ['exit-0', 'on_failure', 'stopped'],
    ['exit-0', 'never', 'stopped'],
    ['crash', 'never', 'failed'],
  ] as const)('(%s) with the policy %s is %s', async (name, restart, status) => {
    // Its run lasts a second: on a busy machine it may have ended before anyone saw it.
    const pod = await fixture.create(team, { name, restart });
    const [code, word] = name === 'crash' ? [1, '1'] : [0, '0'];
    expect(await fixture.until(pod, status)).toMatchObject({
      exit_code: code,
      reason: `Its process ended with exit code ${word}.`,
    });
    expect(fixture.neighbours.workload(pod.pod_id)?.status).toBe('stopped');
    expect((await fixture.usageOf(`pod:${pod.pod_id}`)).map(({ quantity }) => quantity)).toEqual(['1', '0']);
  });

  it('shows no reason of an earlier run once its user has stopped it', async () => {
    const pod = await fixture.running(team, { name: 'crash', restart: 'always' });
    await fixture.untilIs(pod, ({ restarts }) => restarts >= 1);
    await fixture.act(pod, 'stop', team);
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ reason: null });
  });

  it('waits no longer for its back-off when it is restarted', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'restart', team);
    await fixture.query(`UPDATE pod SET failures = 8, next_run_at = now() + interval '5 min' WHERE pod_id = $1`, [
      pod.pod_id,
    ]);
    await fixture.act(pod, 'restart', team);
    expect(await fixture.query('SELECT failures, next_run_at FROM pod WHERE pod_id = $1', [pod.pod_id])).toEqual([
      { failures: 0, next_run_at: null },
    ]);
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
  });

  it('has run again when its container was removed by hand', async () => {
    const pod = await fixture.running(team);
    await (
      await fixture.simulated.driverOf('1')
    ).remove({ kind: 'pod', id: pod.pod_id, run: 1 }, new AbortController().signal);
    await fixture.get(ClusterWatch).sweep('1');
    const again = await fixture.untilIs(pod, ({ restarts, status }) => restarts === 1 && status === 'running');
    expect(again.reason).toBe('The container was removed from outside the platform.');
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
  });

  it.each([
    ['pull-fail', 'The registry has no such image.'],
    ['needs-login', 'The registry needs a log-in for this image.'],
  ])('(%s) has failed where its image cannot be had', async (name, reason) => {
    const pod = await fixture.create(team, { name });
    expect(await fixture.until(pod, 'failed')).toMatchObject({ reason });
    expect(fixture.neighbours.workload(pod.pod_id)?.status).toBe('stopped');
    expect(await fixture.usageOf(`pod:${pod.pod_id}`)).toEqual([]);
  });
});
