import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey, digestApiKey } from '@atoll/api-keys';
import { type CallContext, type EventType, type Operation, type TeamRole, type UserCaller } from '@atoll/contracts';
import {
  credentials,
  credentialsChanged,
  deletionCalledOff,
  membershipChanged,
  teamDeletionRequested,
  teamUpdated,
  teams,
  users,
  workspaceDeletionRequested,
  type Credential,
  type CredentialTeam,
  type Team,
} from '@atoll/contracts/teams';
import { Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { Sealer } from '@atoll/seal';
import {
  BareServiceUnderTest,
  startServiceUnderTest,
  statementsOf,
  timeoutFactor,
  type StartedService,
} from '@atoll/testing';
import { PasswordHashes } from './passwords/password-hashes.service.js';
import { service } from './service.js';
import type { TeamsSettings } from './teams-settings.js';
import { Administrators } from './users/administrators.service.js';

export { errorOf } from '@atoll/testing';

export const pepper = 'the pepper of the specs';
export const operatorEmail = 'operator@example.com';
/** An id that nothing has. */
export const unknownId = '01890000-0000-7000-8000-000000000000';

const toldEvents = [
  membershipChanged,
  teamUpdated,
  teamDeletionRequested,
  workspaceDeletionRequested,
  deletionCalledOff,
].map(({ name }) => name);

/** Hundreds of passwords are set and verified here, and nobody guesses any. */
class QuickHashes extends PasswordHashes {
  protected override get cost() {
    return { memoryCost: 8, timeCost: 1, parallelism: 1 };
  }
}

/**
 * The teams service on a database of its own, with specs in the place of the gateway (calls are made with API keys,
 * looked up as the gateway would) and of the other services (the events that they would be told are kept).
 */
export class TeamsFixture extends BareServiceUnderTest {
  /** Users whose credentials were said to have changed. */
  readonly credentialsChanged: string[] = [];

  private constructor(
    started: StartedService,
    /** The operator's key. */
    readonly admin: string,
  ) {
    super(started);
    this.get(Rpc).listen(credentialsChanged, ({ user_id }) => this.credentialsChanged.push(user_id));
  }

  /** `poolSize`: connections of the service, in place of its own number. */
  static async start({
    poolSize,
    ...settings
  }: Partial<TeamsSettings> & { poolSize?: number } = {}): Promise<TeamsFixture> {
    const admin = createApiKey();
    const given = { keyPepper: pepper, sealKeys: Sealer.createKeys(), deletionHolders: [], ...settings };
    const started = await startServiceUnderTest(
      { ...service, database: { ...service.database, ...(poolSize !== undefined && { poolSize }) } },
      { settings: given, listensTo: toldEvents, providers: [{ provide: PasswordHashes, useClass: QuickHashes }] },
    );
    await started.app.get(Administrators).ensure({ email: operatorEmail, apiKey: admin });
    return new TeamsFixture(started, admin);
  }

  /** From now on each call is made as if to a replica of its own, whose writers know nothing of those of the others. */
  asManyReplicas(): void {
    const writers = this.get(Writers) as unknown as {
      inTurn: (lane: string, context: CallContext, work: () => Promise<unknown>) => Promise<unknown>;
    };
    writers.inTurn = (_lane, _context, work) => work();
  }

  /** Asks as whoever holds the key. */
  async call<I extends object, O extends object>(
    key: string,
    operation: Operation<I, O>,
    input: NoInfer<I>,
    idempotencyKey?: string,
  ): Promise<O> {
    return this.ask(operation, input, await this.contextOf(key, operation, input, idempotencyKey));
  }

  async contextOf(key: string, operation: Operation, input: object, idempotencyKey?: string): Promise<CallContext> {
    const caller = await this.callerOf(key);
    const fingerprint = createHash('sha256').update(JSON.stringify(input)).digest('hex');
    const idempotency =
      idempotencyKey === undefined
        ? {}
        : { idempotency: { key: idempotencyKey, scope: caller.userId + operation.subject, fingerprint } };
    return { requestId: randomUUID(), deadlineAtMs: Date.now() + 30_000 * timeoutFactor, caller, ...idempotency };
  }

  verify(key: string): Promise<Credential> {
    return this.ask(
      credentials.verify,
      { digest: digestApiKey(key, pepper) },
      systemContext('gateway', { deadlineMs: 15_000 * timeoutFactor }),
    );
  }

  async callerOf(key: string): Promise<UserCaller> {
    const found = await this.verify(key);
    if (found.expiry_date && Date.parse(found.expiry_date) <= Date.now())
      throw new AppError('unauthenticated', 'The API key has expired.');
    const callerTeams = callerTeamsOf(found.teams);
    const { key_id: id, user_id: userId, platform_admin: platformAdmin, scope, timezone } = found;
    return {
      kind: 'user',
      userId,
      credential: { kind: 'key', id },
      scope,
      platformAdmin,
      timezone,
      teams: callerTeams,
    };
  }

  /** A first key of a user as a whole, as a session of theirs would make it. */
  async wholeKeyOf(userId: string): Promise<string> {
    const context = await this.contextOf(this.admin, users.issueKey, {});
    const caller: UserCaller = { ...(await this.callerOf(this.admin)), userId, platformAdmin: false };
    return (await this.ask(users.issueKey, {}, { ...context, caller })).api_key;
  }

  /** A team with one member for each role; the operator is a member where none of them is team_owner. */
  async createTeam(...roles: TeamRole[]): Promise<MadeTeam> {
    const people = roles.map((role) => ({ email: `${role}-${randomUUID()}@example.com`, name: role, role }));
    const made = await this.call(this.admin, teams.create, { name: 'Research', members: people });
    // As it is read later: the answer alone shows invitations.
    const team = { ...made, members: made.members.map(({ invitation: _invitation, ...member }) => member) };
    const members = team.members.slice(team.members.length - people.length);
    return {
      team,
      keys: members.map(({ api_key }) => api_key ?? ''),
      userIds: members.map(({ user_id }) => user_id),
      emails: members.map(({ email }) => email),
    };
  }

  /** Which statements the call executes, in their order, whatever comes of it. */
  async statementsOf(call: () => Promise<unknown>): Promise<string[]> {
    const sent = await statementsOf(() => call().catch(() => undefined));
    return sent.map(({ text }) => text);
  }

  /**
   * The payloads of one event about one team that were told so far, once `enough` holds of them; in the order of their
   * revisions.
   */
  async told<P extends { team_id: string }>(
    { name }: EventType<P>,
    teamId: string,
    enough: (payloads: P[]) => boolean,
  ): Promise<P[]> {
    for (const until = Date.now() + 90_000 * timeoutFactor; ; await delay(5)) {
      const payloads = this.events
        .filter((event) => event.name === name)
        .map(({ payload }) => payload as P & { revision: number });
      const about = payloads
        .filter(({ team_id }) => team_id === teamId)
        .toSorted((one, other) => one.revision - other.revision);
      if (enough(about)) return about;
      if (Date.now() > until) throw new Error(`Of ${name} only this was told: ${JSON.stringify(about)}`);
    }
  }
}

/** The teams of a caller, as a gateway makes them of what a credential opens. */
export function callerTeamsOf(teams: readonly CredentialTeam[]): UserCaller['teams'] {
  return teams.map(({ team_id: teamId, role, lacks_second_factor: lacksSecondFactor = false }) => ({
    teamId,
    role,
    ...(lacksSecondFactor && { lacksSecondFactor }),
  }));
}

export interface MadeTeam {
  team: Team;
  /** In the order of the roles; the operator is not among them. */
  keys: string[];
  userIds: string[];
  emails: string[];
}
