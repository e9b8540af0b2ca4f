import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { pods, vms } from '@atoll/contracts/pods';
import { isAppError } from '@atoll/errors';
import { runs } from '@atoll/testing';
import { array, assert, asyncProperty, constantFrom } from 'fast-check';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { billed, endUnseen, type Span } from './late-ends-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 1000);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 });
});
afterAll(() => fixture.stop());

type Kind = 'pod' | 'vm';
type Deed = 'end' | 'look' | 'start' | 'stop' | 'restart' | 'delete';
interface Passage {
  from_state: string | null;
  to_state: string;
  at: Date;
}

const keys = { pod: 'pod_id', vm: 'instance_id' } as const;
const begins = ['pulling', 'starting'];

/** Does so, or is refused. */
async function request(kind: Kind, id: string, name: string, deed: 'start' | 'stop' | 'restart' | 'delete') {
  const { member } = team;
  const act = async (): Promise<unknown> => {
    if (kind === 'vm') return fixture.call(vms[deed], { instance_id: id }, member);
    if (deed === 'delete') return fixture.call(pods.delete, { pod_name: name }, member);
    return fixture.call(pods.act, { pod_name: name, action: deed }, member);
  };
  await act().catch((error: unknown) => {
    if (!isAppError(error)) throw error;
  });
}

async function look(kind: Kind, id: string): Promise<void> {
  await fixture.query(
    `UPDATE ${kind} SET due_at = clock_timestamp(), parked_until = NULL WHERE ${keys[kind]} = $1 AND state = 'running'`,
    [id],
  );
  await fixture.hurry();
  await fixture.work();
}

const historyOf = (kind: Kind, id: string) =>
  fixture.query<Passage>(
    'SELECT from_state, to_state, at FROM machine_history WHERE machine = $1 AND instance = $2 ORDER BY id',
    [kind, id],
  );

/**
 * From when each run was seen until it ended by itself or was to end, whatever was seen of that. A pod is billed on
 * while a run that has not ended by itself is replaced.
 */
function trueTime(kind: Kind, history: readonly Passage[], ends: ReadonlyMap<number, Date>): Span[] {
  const spans: Span[] = [];
  const close = (at: Date) => void (spans.at(-1)?.[1] === null && spans.at(-1)?.splice(1, 1, at.toISOString()));
  let [run, since] = [0, new Date(0)];
  for (const { from_state, to_state, at } of history) {
    if (begins.includes(to_state)) run += 1;
    if (to_state === 'running') {
      since = at;
      if (spans.at(-1)?.[1] !== null) spans.push([at.toISOString(), null]);
    } else if (from_state === 'running') {
      const ended = ends.get(run);
      if (ended && ended < at) close(ended < since ? since : ended);
    }
    const goesOn = kind === 'pod' && [...begins, 'restarting'].includes(to_state);
    if (to_state !== 'running' && !goesOn) close(at);
  }
  return spans.filter(([from, until]) => from !== until);
}

it.each<Kind>(['pod', 'vm'])(
  'law: a %s is billed for the time in which it truly ran, whatever the order of its ends, of looks at it and of requests',
  async (kind) => {
    const deeds = array(constantFrom<Deed>('end', 'end', 'look', 'look', 'start', 'stop', 'restart', 'delete'), {
      minLength: 2,
      maxLength: 8,
    });
    await assert(
      asyncProperty(deeds, async (all) => {
        const { id, name } = await beginning(kind);
        const ends = new Map<number, Date>();
        for (const deed of all) {
          if (deed === 'look') await look(kind, id);
          else if (deed === 'end') {
            const [{ run = 0 } = {}] = await fixture.query<{ run: number }>(
              `SELECT run FROM ${kind} WHERE ${keys[kind]} = $1`,
              [id],
            );
            const at = await endUnseen(fixture, { kind, id, run });
            if (at) ends.set(run, at);
          } else await request(kind, id, name, deed);
        }
        await request(kind, id, name, 'delete');
        await (kind === 'pod' ? fixture.untilDeleted({ pod_id: id }) : fixture.untilVmDeleted({ instance_id: id }));
        const facts = await fixture.usageOf(`${kind}:${id}`);
        const spans = billed(facts).filter(([from, until]) => from !== until);
        expect(spans).toEqual(trueTime(kind, await historyOf(kind, id), ends));
      }),
      runs(60),
    );
  },
);

/** Seen to run. */
async function beginning(kind: Kind): Promise<{ id: string; name: string }> {
  if (kind === 'pod') {
    const { pod_id, pod_name } = await fixture.running(team, { restart: 'never' });
    return { id: pod_id, name: pod_name };
  }
  const vm = await fixture.runningVm(team);
  return { id: vm.instance_id, name: vm.name };
}
