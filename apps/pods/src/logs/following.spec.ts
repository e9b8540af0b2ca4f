import { setTimeout as delay } from 'node:timers/promises';
import { Statements } from '@atoll/database';
import { describeWhere, lokiLacks, memberOf, startLoki, type Loki } from '@atoll/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LogClaims } from './log-claims.js';
import type { LogCollector } from './log-collector.js';
import type { StoreName } from './log-store-fixture.js';
import { LogsFixture, type WrittenPod } from './logs-fixture.js';

const lacking: Record<StoreName, string | undefined> = { postgres: undefined, loki: lokiLacks() };

describe.each(['postgres', 'loki'] as const)('who follows several pods, whose lines are in %s,', (name) => {
  describeWhere(lacking[name], name, () => {
    let fixture: LogsFixture;
    let loki: Loki | undefined;
    beforeAll(async () => {
      loki = name === 'loki' ? await startLoki() : undefined;
      fixture = await LogsFixture.start(loki && { lokiUrl: loki.url });
    });
    afterAll(async () => {
      await fixture.stop();
      await loki?.stop();
    });

    const write = ({ podId }: WrittenPod, message: string, secondsAgo: number) =>
      fixture.write(podId, [message], { at: new Date(Date.now() - secondsAgo * 1000) });
    const stored = async (pod: WrittenPod, message: string) => {
      while (!(await fixture.messages(pod)).includes(message)) await delay(5);
    };
    const isLate = async ({ podId }: WrittenPod) => {
      const late = await fixture.query('SELECT FROM log_source WHERE pod_id = $1 AND holds_until > now()', [podId]);
      return late.length > 0;
    };
    const becomes = async (pod: WrittenPod, replica: LogCollector, state: 'late' | 'current') => {
      do await replica.collect();
      while ((await isLate(pod)) !== (state === 'late'));
    };
    const sourceOf = ({ podId }: WrittenPod, set: string) =>
      fixture.query(`UPDATE log_source SET ${set} WHERE pod_id = $1 AND NOT is_platform`, [podId]);
    const end = async (...pods: WrittenPod[]) => {
      for (const { podId } of pods) await fixture.endRun(podId, 1);
    };

    /** Page after page from the beginning, as long as the follower lives. */
    class Follower {
      readonly messages: string[] = [];
      private cursor: string | null = null;

      constructor(private readonly teamId: string) {}

      async look(): Promise<readonly string[]> {
        const asked = { team_id: this.teamId, order: 'asc' as const, ...(this.cursor && { cursor: this.cursor }) };
        const { data, next_cursor } = await fixture.logs(asked, memberOf(this.teamId));
        this.cursor = next_cursor;
        this.messages.push(...data.map(({ message }) => message));
        return this.messages;
      }

      /** Looks while the replica reads. */
      async until(message: string, replica: LogCollector): Promise<readonly string[]> {
        while (!this.messages.includes(message)) {
          await replica.collect();
          await this.look();
        }
        return this.messages;
      }
    }

    it.each(['is killed', 'stops'])(
      'is shown what the pods of a replica wrote that %s, before later lines of others',
      async (how) => {
        const teamId = fixture.team();
        const [ending, other] = [fixture.replica(), fixture.replica()];
        const one = await fixture.pod(teamId);
        write(one, 'one', 60);
        await becomes(one, ending, 'current');
        const two = await fixture.pod(teamId);
        write(two, 'two', 50);
        await other.collect();
        const follower = new Follower(teamId);
        await follower.until('two', other);
        const [{ reader_id = '' } = {}] = await fixture.query<{ reader_id: string }>(
          'SELECT reader_id FROM log_source WHERE pod_id = $1 AND NOT is_platform',
          [one.podId],
        );
        await ending.beforeApplicationShutdown();
        const isKilled = how === 'is killed';
        // It was last seen half a minute ago, and is thought to live until another one takes over.
        await fixture.query(
          `UPDATE log_reader SET read_to = now() - interval '30 seconds', alive_until = coalesce($2, alive_until) WHERE id = $1`,
          [reader_id, isKilled ? 'infinity' : null],
        );
        write(one, 'stored late', 20);
        write(two, 'stored at once', 10);
        await stored(two, 'stored at once');
        expect(await follower.look()).toEqual(['one', 'two']);
        if (isKilled) await fixture.query('UPDATE log_reader SET alive_until = now() WHERE id = $1', [reader_id]);
        expect(await follower.until('stored at once', other)).toEqual(['one', 'two', 'stored late', 'stored at once']);
        await end(one, two);
      },
    );

    it('is shown what was written while no replica read, however long, in order', async () => {
      const teamId = fixture.team();
      const [before, after] = [fixture.replica(), fixture.replica()];
      const [one, two] = [await fixture.pod(teamId), await fixture.pod(teamId)];
      for (const pod of [one, two]) {
        fixture.engines.run(pod.podId, 1);
        await becomes(pod, before, 'current');
      }
      await before.beforeApplicationShutdown();
      await fixture.query(
        `UPDATE log_reader SET read_to = now() - interval '1 hour', alive_until = now() - interval '50 minutes'`,
      );
      write(one, 'first', 1_000);
      write(two, 'second', 500);
      // Their lines are stored one pod after the other.
      fixture.engines.unreachable.add(one.podId);
      const follower = new Follower(teamId);
      await after.collect();
      await stored(two, 'second');
      expect(await follower.look()).toEqual([]);
      fixture.engines.unreachable.delete(one.podId);
      expect(await follower.until('second', after)).toEqual(['first', 'second']);
      await end(one, two);
    });

    it('waits for no pod that writes nothing, and for one whose cluster does not answer for a minute', async () => {
      const [teamId, otherTeamId] = [fixture.team(), fixture.team()];
      const [lost, , talking] = [await fixture.pod(teamId), await fixture.pod(teamId), await fixture.pod(teamId)];
      const ofOther = await fixture.pod(otherTeamId);
      fixture.engines.run(lost.podId, 1);
      const replica = fixture.replica();
      await replica.collect();
      const follower = new Follower(teamId);
      write(talking, 'while all is well', 0);
      await follower.until('while all is well', replica);
      fixture.engines.unreachable.add(lost.podId);
      await becomes(lost, replica, 'late');
      await sourceOf(lost, `holds_until = 'infinity'`);
      for (const pod of [talking, ofOther]) write(pod, 'while one is away', -1);
      await new Follower(otherTeamId).until('while one is away', replica);
      await stored(talking, 'while one is away');
      expect(await follower.look()).toEqual(['while all is well']);
      await sourceOf(lost, 'holds_until = now()');
      await follower.until('while one is away', replica);
      expect(await new Follower(teamId).until('while one is away', replica)).toEqual(follower.messages);
      fixture.engines.unreachable.delete(lost.podId);
      await end(lost, talking, ofOther);
    });

    it('is shown a line of the platform that is stored late before later lines of pods', async () => {
      const teamId = fixture.team();
      const pod = await fixture.pod(teamId);
      const claims = new LogClaims(fixture.get(Statements));
      const replica = fixture.replica(undefined, claims);
      write(pod, 'early', 60);
      await replica.collect();
      const follower = new Follower(teamId);
      await follower.until('early', replica);
      await fixture.query(
        `INSERT INTO platform_line (pod_id, message, at) VALUES ($1, 'The pod stops.', now() - interval '40 seconds')`,
        [pod.podId],
      );
      // Claimed by a replica that does not get to store it.
      await claims.claimPlatformLines([]);
      write(pod, 'late', 20);
      await stored(pod, 'late');
      expect(await follower.look()).toEqual(['early']);
      expect(await follower.until('late', replica)).toEqual(['early', 'The pod stops.', 'late']);
      await end(pod);
    });
  });
});
