import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allowErrors } from '@atoll/testing';
import { getSimplePaths } from 'xstate/graph';
import { berthLogic, cause, crashPoints, Harbour, itsDeath, type BerthEvent } from './berth-fixture.js';

/** Each way through the definition, as it generates them: the events, and the states they lead to. */
const paths = getSimplePaths(berthLogic).map(({ steps }) =>
  steps
    .map(({ event, state }) => ({ event: event.type, state: state.value }))
    .filter(({ event }) => !event.startsWith('xstate')),
);

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterAll(() => harbour.close());

describe.each(paths.map((path) => [path.map(({ event }) => event).join(' ') || 'nothing', path] as const))(
  'along %s',
  (_, path) => {
    it('each event commits its state, a deadline where it is transient, and a line of history with who, why, when and by which request', async () => {
      const id = await harbour.ask();
      let from: string = 'dredging';
      for (const { event, state } of path) {
        const moved = await harbour.send(id, event);
        const rule = harbour.machine.ruleOf(state);
        expect(moved).toMatchObject({ state, attempts: 0, claimToken: null, requestId: 'request-1' });
        expect(moved?.deadlineAt && moved.deadlineAt.getTime() - moved.enteredAt.getTime()).toBe(
          rule ? rule.deadlineMs : null,
        );
        expect(moved?.dueAt !== null).toBe(rule !== undefined);
        const last = (await harbour.history(id)).at(-1);
        expect(last).toMatchObject({
          machine: 'berth',
          fromState: from,
          toState: state,
          event,
          actor: cause.actor,
          requestId: 'request-1',
        });
        expect(last?.at).toEqual(moved?.enteredAt);
        from = state;
      }
      expect((await harbour.history(id)).length).toBe(path.length + 1);
    });

    it.each(crashPoints)(
      'a process that dies at each step, %s, changes nothing: another does the step again, and the end is the same',
      async (point) => {
        await harbour.dataSource.query('DELETE FROM berth');
        const id = await harbour.ask();
        for (const { event, state } of path) {
          harbour.machine.does = Object.fromEntries(
            (['dredging', 'clearing', 'filling'] as const).map((transient) => [
              transient,
              (): Promise<{ event: BerthEvent }> => Promise.resolve({ event }),
            ]),
          );
          const before = [await harbour.read(id), await harbour.history(id)] as const;
          const hasStep = before[0].dueAt !== null;
          allowErrors(itsDeath);
          expect(await harbour.dyingWorker(point).doNext()).toBe(hasStep);
          const after = await harbour.read(id);
          const unclaimed = { claimToken: null, claimedUntil: null };
          expect([{ ...after, ...unclaimed }, await harbour.history(id)]).toEqual([
            { ...before[0], ...unclaimed },
            before[1],
          ]);
          expect(after.claimToken !== null).toBe(hasStep);
          // Nobody else takes it before the claim has run out.
          expect(await harbour.worker().doNext()).toBe(false);
          await harbour.dataSource.query(`UPDATE berth SET claimed_until = claimed_until - interval '1 minute'`);
          // What a user sends, or what a step finds out.
          if (hasStep) await harbour.worker().doNext();
          else await harbour.send(id, event);
          expect(await harbour.read(id)).toMatchObject({
            state,
            claimToken: null,
            attempts: 0,
            revision: before[0].revision + 1,
          });
          expect((await harbour.history(id)).slice(0, -1)).toEqual(before[1]);
          harbour.machine.does = {};
        }
      },
    );
  },
);
