import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere, lokiLacks, memberOf, startLoki, type Loki } from '@atoll/testing';
import { LogsFixture } from './logs-fixture.js';

describeWhere(lokiLacks(), 'after a restore of a database that is older than what Loki has', () => {
  let loki: Loki;
  let fixture: LogsFixture;
  beforeAll(async () => {
    loki = await startLoki();
    fixture = await LogsFixture.start({ lokiUrl: loki.url });
  });
  afterAll(async () => {
    await fixture.stop();
    await loki.stop();
  });

  async function podThatWrote(teamId: string, message: string, podName: string): Promise<void> {
    const { podId } = await fixture.pod(teamId, { podName });
    fixture.write(podId, [message], { at: new Date(Date.now() - 10_000) });
    await fixture.endRun(podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
  }

  it('a pod does not show the lines of a forgotten one whose number it got', async () => {
    const teamId = fixture.team();
    await podThatWrote(teamId, 'forgotten', 'one');
    const [{ no }] = (await fixture.query('SELECT min(no) AS no FROM log_source')) as [{ no: number }];
    await fixture.query(`DELETE FROM pod_run; DELETE FROM log_source; DELETE FROM pod`);
    await fixture.query(`ALTER TABLE log_source ALTER no RESTART WITH ${no}`);
    await podThatWrote(teamId, 'known', 'two');
    for (const asked of [{ pod_name: 'two' }, { team_id: teamId }, { pod_name: 'two', order: 'asc' as const }])
      expect((await fixture.logs(asked, memberOf(teamId))).data.map(({ message }) => message)).toEqual(['known']);
  });
});
