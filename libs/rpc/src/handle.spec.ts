import { expect, it } from '@jest/globals';
import { contract, operation, Text, type CallContext } from '@atoll/contracts';
import { Controller } from '@nestjs/common';
import { systemContext } from './call-context.js';
import { Handle, type Handlers } from './handle.js';
import { startService } from './probe-fixture.js';
import type { Rpc } from './rpc.js';
import { inProcess } from './transports-fixture.js';

class Key {
  @Text({ max: 10 })
  team_id!: string;
}
class Team {
  name!: string;
}
class Teams {
  data!: Team[];
}
const teams = contract('teams', { get: operation(Key, Team), list: operation(Key, Teams) });

@Controller()
class TeamsController implements Handlers<typeof teams> {
  @Handle(teams.get)
  get(input: Key, { requestId }: CallContext): Promise<Team> {
    return Promise.resolve({ name: `${input.constructor.name} ${input.team_id} ${requestId}` });
  }

  @Handle(teams.list)
  list(): Promise<Teams> {
    return Promise.resolve({ data: [] });
  }
}

it('a method of a controller answers its operation, and is called with the input and the context of the call', async () => {
  const { rpc, strategy } = inProcess();
  const service = await startService(strategy({ service: 'teams' }), TeamsController);
  const context = { ...systemContext('spec', { deadlineMs: 60_000 }), requestId: 'request' };
  expect(await rpc.call(teams.get, { team_id: 'a' }, context)).toEqual({ name: 'Key a request' });
  expect(await rpc.call(teams.list, { team_id: 'a' }, context)).toEqual({ data: [] });
  await service.close();
});

// What follows does not run: `tsc` refuses a `@ts-expect-error` above a line that compiles.

// @ts-expect-error -- no `list`
class _WithoutList implements Handlers<typeof teams> {
  get(input: Key): Promise<Team> {
    return Promise.resolve({ name: input.team_id });
  }
}

class _WrongService implements Handlers<typeof teams> {
  // @ts-expect-error -- takes a Team
  get(input: Team): Promise<Team> {
    return Promise.resolve(input);
  }
  // @ts-expect-error -- answers with a Team
  list(): Promise<Team> {
    return Promise.resolve({ name: '' });
  }
}

class _WrongHandlers {
  // @ts-expect-error -- takes a Team
  @Handle(teams.get)
  otherInput(input: Team): Promise<Team> {
    return Promise.resolve(input);
  }
  // @ts-expect-error -- takes text for a context
  @Handle(teams.get)
  otherContext(_input: Key, context: string): Promise<Team> {
    return Promise.resolve({ name: context });
  }
  // @ts-expect-error -- answers with a Key
  @Handle(teams.get)
  otherAnswer(input: Key): Promise<Key> {
    return Promise.resolve(input);
  }
  // @ts-expect-error -- the answer may be missing
  @Handle(teams.get)
  perhaps(): Promise<Team | undefined> {
    return Promise.resolve(undefined);
  }
  // @ts-expect-error -- answers with no promise
  @Handle(teams.get)
  atOnce(input: Key): Team {
    return { name: input.team_id };
  }
}

const _wrongCalls = async (rpc: Rpc, context: CallContext): Promise<string> => {
  const team = await rpc.call(teams.get, { team_id: 'a' }, context);
  // @ts-expect-error -- no such field
  await rpc.call(teams.get, { id: 'a' }, context);
  // @ts-expect-error -- a field of another type
  await rpc.call(teams.get, { team_id: 1 }, context);
  // @ts-expect-error -- no context
  await rpc.call(teams.get, { team_id: 'a' });
  // @ts-expect-error -- the answer has no such field
  return team.name + team.id;
};
