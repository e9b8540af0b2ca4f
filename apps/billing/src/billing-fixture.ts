import { randomUUID } from 'node:crypto';
import {
  teamChanged,
  type CallContext,
  type EventType,
  type Operation,
  type TeamChanged,
  type TeamRole,
  type UserCaller,
} from '@atoll/contracts';
import { newId, toAppError } from '@atoll/database';
import { isAppError, type AppError } from '@atoll/errors';
import { InProcessCourier, type Courier, type DomainEvent } from '@atoll/events';
import { InProcessBus, InProcessStrategy, Rpc, RpcModule } from '@atoll/rpc';
import { aTeam, createDatabase, OwnerOfTeams } from '@atoll/testing';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { BillingModule, type BillingOptions } from './billing.module.js';

export { errorOf } from '@atoll/testing';

/** A team as billing was told of it. */
export interface ToldTeam {
  team_id: string;
  workspaces: { id: string; name: string }[];
}

/** The billing service on a database of its own, with specs in the place of the gateway and of the other services. */
export class BillingFixture {
  private constructor(
    readonly app: INestMicroservice,
    readonly owner: OwnerOfTeams,
    /** What billing told the others so far. */
    readonly events: readonly DomainEvent[],
    private readonly others: ReturnType<Courier['join']>,
    private readonly dropDatabase: () => Promise<void>,
  ) {}

  /** `teams`: what their owner has. */
  static async start(options: Partial<BillingOptions> & { teams?: TeamChanged[]; isOwnerAway?: boolean } = {}): Promise<BillingFixture> {
    const database = await createDatabase();
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    owner.teams.push(...(options.teams ?? []));
    if (options.isOwnerAway) owner.leave();
    const courier = new InProcessCourier({ services: ['billing', 'specs'] });
    const module = BillingModule.register({ databaseUrl: database.url, rpc: RpcModule.forMemory({ bus }), courier, ...options });
    const strategy = new InProcessStrategy({ service: 'billing', bus, mapError: asAppError });
    const app = await NestFactory.createMicroservice(module, { strategy, abortOnError: false });
    await app.listen();
    const events: DomainEvent[] = [];
    const take = (event: DomainEvent): Promise<'done'> => {
      if (!events.some(({ id }) => id === event.id)) events.push(event);
      return Promise.resolve('done');
    };
    const others = courier.join('specs', [{ name: 'specs', eventNames: ['billing.price_changed'], take }], () => undefined);
    return new BillingFixture(app, owner, events, others, () => database.drop());
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.dropDatabase();
  }

  call<I extends object, O extends object>(
    operation: Operation<I, O>,
    input: NoInfer<I>,
    caller: Partial<UserCaller> = operator,
    idempotency?: { key: string; fingerprint: string },
  ): Promise<O> {
    return this.app.get(Rpc, { strict: false }).call(operation, input, contextOf(caller, idempotency));
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.app.get(DataSource, { strict: false }).query<Row[]>(sql, values);
  }

  /** Hands billing an event as its owner would tell it, and waits until it has taken it. */
  async tell<P extends object>(type: EventType<P>, payload: P): Promise<void> {
    const event = { id: newId(), name: type.name, payload, occurredAt: new Date().toISOString() };
    const outcome = await this.others.publish(event, 1);
    if (outcome !== 'done') throw new Error(`${type.name} was not taken: ${outcome.reason}`);
  }

  /** Tells billing of a new team with these workspaces. */
  async team(...workspaceNames: string[]): Promise<ToldTeam> {
    const workspaces = ['default', ...workspaceNames].map((name) => ({ id: newId(), name }));
    const team = aTeam(workspaces);
    await this.tell(teamChanged, team);
    return { team_id: team.team_id, workspaces };
  }
}

export const operator: Partial<UserCaller> = { platformAdmin: true };

/** A member of one team, in UTC unless said. */
export function memberOf(teamId: string, role: TeamRole = 'team_owner', timezone = 'UTC'): Partial<UserCaller> {
  return { platformAdmin: false, scope: 'membership', timezone, teams: [{ teamId, role }] };
}

function contextOf(caller: Partial<UserCaller>, idempotency?: { key: string; fingerprint: string }): CallContext {
  const whole: UserCaller = {
    kind: 'user',
    userId: newId(),
    keyId: newId(),
    scope: 'user',
    platformAdmin: false,
    timezone: 'UTC',
    teams: [],
    ...caller,
  };
  return {
    requestId: randomUUID(),
    deadlineAtMs: Date.now() + 15_000,
    caller: whole,
    ...(idempotency && { idempotency: { ...idempotency, scope: 'specs' } }),
  };
}

function asAppError(error: unknown): AppError | undefined {
  const mapped = toAppError(error);
  return isAppError(mapped) ? mapped : undefined;
}
