import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { cause, Harbour, type BerthEvent } from './berth-fixture.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
afterAll(() => harbour.close());

const events: BerthEvent[] = ['DREDGED', 'CANCEL', 'FAILED', 'LEAVE', 'CLEARED', 'UNDONE'];

it('law: moving many rows by one event does to each what moving it alone does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.constantFrom(...events), { maxLength: 3 }), { maxLength: 8 }),
      fc.constantFrom(...events),
      async (pasts, event) => {
        const ids = await Promise.all(pasts.map(() => harbour.ask()));
        for (const [at, past] of pasts.entries()) for (const each of past) await harbour.send(ids[at] ?? '', each);
        const before = await Promise.all(ids.map((id) => harbour.read(id)));
        harbour.machine.enteredStates.length = 0;
        const moved = await harbour.transactions.run((manager) =>
          harbour.machine.moveAll(manager, before, event, cause, { ship: 'Ra' }),
        );
        for (const row of before) {
          const to = harbour.machine.definition.next(row.state as never, event);
          const after = await harbour.read(row.berthId);
          const last = (await harbour.history(row.berthId)).at(-1);
          if (to === undefined) {
            expect([after, moved.some(({ berthId }) => berthId === row.berthId)]).toEqual([row, false]);
            continue;
          }
          const rule = harbour.machine.ruleOf(to);
          expect(moved).toContainEqual(after);
          expect(after).toMatchObject({
            state: to,
            ship: 'Ra',
            revision: row.revision + 1,
            attempts: 0,
            claimToken: null,
          });
          expect(after.deadlineAt && after.deadlineAt.getTime() - after.enteredAt.getTime()).toBe(
            rule ? rule.deadlineMs : null,
          );
          expect(last).toMatchObject({
            fromState: row.state,
            toState: to,
            event,
            actor: cause.actor,
            at: after.enteredAt,
          });
        }
        expect(harbour.machine.enteredStates.length).toBe(moved.length);
      },
    ),
    runs(20),
  );
});

it('one event may give each of many rows a value that follows from what the row has', async () => {
  const ids = [await harbour.ask('Fram'), await harbour.ask('Vega')];
  const rows = await Promise.all(ids.map((id) => harbour.read(id)));
  const values = { ship: () => `ship || ' of Oslo'`, piers: ['north'] };
  const moved = await harbour.transactions.run((manager) =>
    harbour.machine.moveAll(manager, rows, 'DREDGED', cause, values),
  );
  expect(moved.map(({ ship, piers, state }) => [ship, piers, state])).toEqual([
    ['Fram of Oslo', ['north'], 'in_use'],
    ['Vega of Oslo', ['north'], 'in_use'],
  ]);
});

it('an expression for a column of JSON is not taken for its value', () => {
  const lastError = () => `'{}'`;
  expect(harbour.machine.columnsOf({ lastError }).get('last_error')).toBe(lastError);
});

it('many rows are inserted in their order, each with its own cause in its history', async () => {
  const all = ['Fram', 'Vega', 'Belgica'].map((ship, at) => ({
    values: { ship },
    cause: { actor: `user:${at}`, requestId: `r${at}`, reason: ship },
  }));
  const rows = await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, all));
  expect(rows.map(({ ship, requestId, state }) => [ship, requestId, state])).toEqual(
    all.map(({ values, cause }) => [values.ship, cause.requestId, 'dredging']),
  );
  const histories = await Promise.all(rows.map(({ berthId }) => harbour.history(berthId)));
  expect(histories.map((lines) => lines.map(({ actor, requestId, reason }) => ({ actor, requestId, reason })))).toEqual(
    all.map(({ cause }) => [cause]),
  );
  expect(await harbour.transactions.run((manager) => harbour.machine.insertAll(manager, []))).toEqual([]);
});
