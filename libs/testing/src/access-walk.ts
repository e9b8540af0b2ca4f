import type * as Jest from '@jest/globals';
import { eventLog, teamRoles, type Operation, type TeamRole, type UserCaller } from '@atoll/contracts';
import { deadLetters } from '@atoll/contracts/operator';
import { newId } from '@atoll/database';
import type { PlatformService } from '@atoll/service-names';
import { Bystander } from './bystander.js';
import { itHidesObjects } from './hidden-objects.js';
import { memberOf, operator } from './service-under-test.js';

/** Permissions as documented, independent of the code that enforces them. */
const rolesThatMay = {
  readTeam: teamRoles,
  readBilling: ['team_owner', 'team_admin', 'billing_viewer'],
  useResources: ['team_owner', 'team_admin', 'member'],
  manageTeam: ['team_owner', 'team_admin'],
  deleteTeam: ['team_owner'],
  /** Of the operator alone. */
  operate: [],
  /** What services ask each other: no user may, and the operator is one. */
  serve: [],
  /** Of no team: of whoever has a credential. */
  call: teamRoles,
} as const satisfies Record<string, readonly TeamRole[]>;

type Need = keyof typeof rolesThatMay;

function mayDo(role: TeamRole, need: Need): boolean {
  const roles: readonly TeamRole[] = rolesThatMay[need];
  return roles.includes(role);
}

/** Nothing is changed by these. */
const reading = new Set<Need>(['readTeam', 'readBilling', 'call']);

/** An operation, who may do it, and what it is asked about in a place. */
type AccessRule<Place> = readonly [needs: Need, operation: Operation, input: (place: Place) => object];

/** Those that libs/events adds to each service. */
function ofEachService(service: PlatformService): Record<string, AccessRule<unknown>> {
  const { list, replay, drop } = deadLetters(service);
  const one = () => ({ service, dead_letter_id: newId() });
  return {
    'list dead letters': ['operate', list, () => ({})],
    'replay a dead letter': ['operate', replay, one],
    'drop a dead letter': ['operate', drop, one],
    'read events again': [
      'serve',
      eventLog(service).read,
      () => ({ event_name: 'x', after: 0, published_before_ms: 0 }),
    ],
  };
}

/** A service whose operations are walked. */
export interface AccessWalk<Place> {
  readonly service: PlatformService;
  /** Makes a team that the service is told of, with the objects that the operations are asked about. */
  readonly place: () => Promise<Place & { readonly team_id: string }>;
  readonly call: (
    operation: Operation,
    input: object,
    caller: Partial<UserCaller>,
    idempotency?: { readonly key: string; readonly fingerprint: string },
  ) => Promise<unknown>;
  /** Asks the database of the service. */
  readonly query: <Row extends object>(sql: string, values?: unknown[]) => Promise<Row[]>;
  /** In an order in which each can be done after the ones before. */
  readonly operations: Readonly<Record<string, AccessRule<Place>>>;
  /** Those of `operations` that succeed in this order and keep their replies under an `Idempotency-Key`, at least. */
  readonly kept: readonly string[];
  /** Fields of replies that are secret: in a repeated reply they are masked, with `…`, or left out. */
  readonly shownOnce?: readonly string[];
  /** Of all operations that the service serves. */
  readonly subjects: () => readonly string[];
  /** What is served besides `operations`, by what it is of. */
  readonly elsewhere: Readonly<Record<string, readonly Operation[]>>;
  /** Reads that change with time, or tell what others have left of what all teams share. */
  readonly changing?: readonly string[];
  /** Has the team deleted with all that it holds, as far as the service does that. */
  readonly deletion?: (place: Place) => Promise<unknown>;
  /**
   * For operations that grant something to a team: how the service learns that the team is suspended, and what the team
   * may still do besides reading.
   */
  readonly suspension?: { readonly begin: (place: Place) => Promise<unknown>; readonly permits: readonly string[] };
  /**
   * How the service learns that the team is deleted, also after a suspension, and which operations still know the team
   * for the operator.
   */
  readonly deleted: { readonly begin: (place: Place) => Promise<unknown>; readonly keeps: readonly string[] };
}

/** How a member may call: by a key to the team, or by a session, which opens all teams of its user. */
const ways = ['key', 'session'] as const;

/** A member of the team. One who calls with a session also owns another team, of which nothing may be visible. */
function callerBy(way: (typeof ways)[number], teamId: string, role: TeamRole): Partial<UserCaller> {
  if (way === 'key') return memberOf(teamId, role);
  const teams = [
    { teamId: newId(), role: 'team_owner' as const },
    { teamId, role },
  ];
  return { ...memberOf(teamId, role), scope: 'user', credential: { kind: 'session', id: newId() }, teams };
}

/** Possible outcomes of an authorised call if something that it needs is missing. */
const unfulfilled = new Set(['conflict', 'unavailable', 'insufficient_capacity', 'spec_mismatch', 'not_supported']);

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  const code = await call.then(
    () => 'done',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
  return unfulfilled.has(code) ? 'done' : code;
}

/** No answer where something is missing; throws what else went wrong. */
function unfulfilledOnly(error: unknown): undefined {
  if (!unfulfilled.has((error as { code?: string }).code ?? '')) throw error;
}

/** What somebody of another team is told. */
function ofStrangers(need: Need): string {
  if (need === 'call') return 'done';
  return need === 'operate' || need === 'serve' ? 'forbidden' : 'not_found';
}

/** What a member of a suspended team is told. */
function whileSuspended(role: TeamRole, need: Need, isPermitted: boolean): string {
  if (!mayDo(role, need)) return 'forbidden';
  return reading.has(need) || isPermitted ? 'done' : 'team_suspended';
}

/** One place for all who may only read, made when the first of them asks: nothing is done to it. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

async function placeOfSuspended<Place>({ place, suspension }: AccessWalk<Place>) {
  const here = await place();
  await suspension?.begin(here);
  return here;
}

/** Specs that walk operations of a service, by each role and each kind of credential, and as another team's owner. */
export function describeAccess<Place>(service: AccessWalk<Place>): void {
  const { place, call, suspension } = service;
  // The globals of Jest: tools import this library outside of it.
  const { describe, expect, it } = globalThis as unknown as Pick<typeof Jest, 'describe' | 'expect' | 'it'>;
  const rules = Object.entries({ ...service.operations, ...ofEachService(service.service) });
  const expected = (outcome: (need: Need, name: string) => string) =>
    Object.fromEntries(rules.map(([name, [need]]) => [name, outcome(need, name)]));
  const placeToRead = once(place);
  const suspendedPlace = () => placeOfSuspended(service);
  const suspendedPlaceToRead = once(suspendedPlace);
  const changesNothing = (role: TeamRole) => rules.every(([, [need]]) => reading.has(need) || !mayDo(role, need));

  async function walk(
    callerIn: (teamId: string) => Partial<UserCaller>,
    make = placeToRead,
  ): Promise<Record<string, string>> {
    const here = await make();
    const found: Record<string, string> = {};
    for (const [name, [, operation, input]] of rules)
      found[name] = await outcomeOf(call(operation, input(here), callerIn(here.team_id)));
    return found;
  }

  describe.each(ways)('who may do what by a %s', (way) => {
    it.each(teamRoles)('as %s', async (role) => {
      const found = await walk((teamId) => callerBy(way, teamId, role), changesNothing(role) ? placeToRead : place);
      expect(found).toEqual(expected((need) => (mayDo(role, need) ? 'done' : 'forbidden')));
    });

    if (suspension) {
      it.each(teamRoles)('as %s of a suspended team: read, stop and give back, and nothing else', async (role) => {
        const make = changesNothing(role) ? suspendedPlaceToRead : suspendedPlace;
        const found = await walk((teamId) => callerBy(way, teamId, role), make);
        expect(found).toEqual(expected((need, name) => whileSuspended(role, need, suspension.permits.includes(name))));
      });
    }

    it('another team is not there, and what is the operator’s is forbidden', async () => {
      expect(await walk(() => callerBy(way, newId(), 'team_owner'))).toEqual(expected(ofStrangers));
    });
  });
  for (const specs of [itKnowsWhatIsServed, itHidesOthers]) specs(service, rules, placeToRead);
  for (const specs of [itForgetsDeletedTeams, itLeavesOthersAlone, itIsToldOfItselfAlone]) specs(service);

  it('a session without the second factor that the team requires does nothing there', async () => {
    const lacking = (teamId: string) => ({
      ...callerBy('session', teamId, 'team_owner'),
      teams: [{ teamId, role: 'team_owner' as const, lacksSecondFactor: true }],
    });
    expect(await walk(lacking)).toEqual(expected((need) => (need === 'call' ? 'done' : 'forbidden')));
  });
  // Last: the operator's operations change what all places share.
  itRepeatsItsReplies(service);
}

type Rules<Place> = readonly (readonly [name: string, rule: AccessRule<Place>])[];

function itKnowsWhatIsServed<Place>(
  { call, elsewhere, subjects }: AccessWalk<Place>,
  rules: Rules<Place>,
  placeToRead: () => Promise<Place>,
): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  it('each operation that is served is walked, or is said to be elsewhere', () => {
    const walked = rules.map(([, [, operation]]) => operation);
    const known = [...walked, ...Object.values(elsewhere).flat()].map(({ subject }) => subject);
    expect(new Set(known)).toEqual(new Set(subjects()));
  });

  it('what services ask each other is refused to the operator too', async () => {
    const here = await placeToRead();
    for (const [name, [need, operation, input]] of rules) {
      if (need !== 'serve') continue;
      expect([name, await outcomeOf(call(operation, input(here), operator))]).toEqual([name, 'forbidden']);
    }
  });
}

/** Asked by the owner of another team that the service knows, and that has the same things. */
function itHidesOthers<Place>(
  { call, query, place }: AccessWalk<Place>,
  rules: Rules<Place>,
  placeToRead: AccessWalk<Place>['place'],
): void {
  type Known = Place & { readonly team_id: string };
  const hidden = rules.filter(([, [need]]) => ofStrangers(need) === 'not_found');
  const elsewhere = once(place);
  const asks = hidden.map(([name, [, operation, input]]) => {
    const ask = async (at: Known) =>
      call(operation, input(at), callerBy('session', (await elsewhere()).team_id, 'team_owner'));
    return [name, ask] as const;
  });
  const stateOf = async ({ team_id }: Known) => (await Bystander.of(query, [team_id], [])).before;
  itHidesObjects(placeToRead, asks, stateOf);
}

function itForgetsDeletedTeams<Place>({ place, call, operations, deleted }: AccessWalk<Place>): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  it('a deleted team is not there for the operator either, but for its bills', async () => {
    const here = await place();
    await deleted.begin(here);
    const found: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const [name, [need, operation, input]] of Object.entries(operations)) {
      const [asked, isKept] = [input(here), deleted.keeps.includes(name)];
      if (need === 'serve' || !('team_id' in asked || isKept)) continue;
      found[name] = await outcomeOf(call(operation, asked, operator));
      expected[name] = isKept ? 'done' : 'not_found';
    }
    expect(found).toEqual(expected);
  });
}

/** What an owner does in one place, step by step, beside another place. */
function itLeavesOthersAlone<Place>({ place, call, query, operations, deletion }: AccessWalk<Place>): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  it('law: whatever a team does, of another team nothing is changed, and nothing is shown', async () => {
    const [here, doomed, elsewhere] = [await place(), await place(), await place()];
    const bystander = await Bystander.of(query, [elsewhere.team_id], [here.team_id, doomed.team_id]);
    expect(new Set([here.team_id, doomed.team_id, elsewhere.team_id]).size).toBe(3);
    expect(bystander.hasMarks).toBe(true);
    for (const [name, [need, operation, input]] of Object.entries(operations)) {
      const caller = callerBy('session', here.team_id, 'team_owner');
      const isTheirs = need !== 'operate' && need !== 'serve';
      const answer = isTheirs ? await call(operation, input(here), caller).catch(unfulfilledOnly) : undefined;
      expect([name, await bystander.rows()]).toEqual([name, bystander.before]);
      expect([name, bystander.shownIn(answer)]).toEqual([name, []]);
    }
    await deletion?.(doomed);
    expect(await bystander.rows()).toEqual(bystander.before);
  });
}

/** Fields of answers that change from one moment to the next. */
const ofNow = ['as_of', 'metrics'];

function without(fields: readonly string[], answers: object): object {
  return JSON.parse(JSON.stringify(answers, (key, value: unknown) => (fields.includes(key) ? '' : value))) as object;
}

/** What stands in these fields, at any depth. */
function within(fields: readonly string[], answers: object): string[] {
  const found: string[] = [];
  JSON.stringify(answers, (key, value: unknown) => {
    if (fields.includes(key) && typeof value === 'string') found.push(value);
    return value;
  });
  return found;
}

/** What a team reads before there is another, and beside it. */
function itIsToldOfItselfAlone<Place>({ place, call, operations, changing = [] }: AccessWalk<Place>): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  it('law: what a team reads is the same, whatever another has', async () => {
    const here = await place();
    const caller = callerBy('session', here.team_id, 'team_owner');
    const read = async () => {
      const answers: Record<string, unknown> = {};
      for (const [name, [need, operation, input]] of Object.entries(operations))
        if (reading.has(need) && !changing.includes(name)) answers[name] = await call(operation, input(here), caller);
      return without(ofNow, answers);
    };
    const before = await read();
    // There is something to compare.
    expect(before).not.toEqual({});
    await place();
    expect(await read()).toEqual(before);
  });
}

/** Calls under keys, and the same calls again after the team is suspended and then deleted. */
function itRepeatsItsReplies<Place>({ place, call, query, operations, ...service }: AccessWalk<Place>): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  const { shownOnce = [] } = service;
  it('law: what was replied under an idempotency key is replied again, also after the team is suspended or deleted', async () => {
    const here = await place();
    const countKeys = async () => (await query('SELECT FROM idempotency_key')).length;
    const [replies, calls]: [Record<string, unknown>, Record<string, () => Promise<unknown>>] = [{}, {}];
    for (const [name, [need, operation, input]] of Object.entries(operations)) {
      // The team is suspended first, and deleted last.
      if (need === 'deleteTeam') continue;
      const caller = need === 'operate' ? operator : callerBy('session', here.team_id, 'team_owner');
      const [asked, idempotency] = [input(here), { key: `${name} ${here.team_id}`, fingerprint: name }];
      const ask = () => call(operation, asked, caller, idempotency).catch(String);
      const before = await countKeys();
      const reply = await ask();
      if ((await countKeys()) === before) continue;
      replies[name] = reply;
      calls[name] = ask;
    }
    expect(Object.keys(replies)).toEqual(expect.arrayContaining([...service.kept]));
    const isSecret = (each: string) => !each.includes('…');
    expect(within(shownOnce, replies).some(isSecret)).toBe(shownOnce.length > 0);
    for (const end of [service.suspension?.begin, service.deleted.begin]) {
      await end?.(here);
      const again: Record<string, unknown> = {};
      for (const [name, ask] of Object.entries(calls)) again[name] = await ask();
      expect(without(shownOnce, again)).toEqual(without(shownOnce, replies));
      expect(within(shownOnce, again).filter(isSecret)).toEqual([]);
    }
  });
}
