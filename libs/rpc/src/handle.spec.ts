import { describe, expect, it } from '@jest/globals';
import { contract, operation, type CallContext } from '@atoll/contracts';
import { Handle, type Handlers } from './handle.js';
import type { Rpc } from './rpc.js';

class Key {
  team_id!: string;
}
class Team {
  name!: string;
}
class Teams {
  data!: Team[];
}
const teams = contract('teams', { get: operation(Key, Team), list: operation(Key, Teams) });

/** Each `@ts-expect-error` fails the type check where the line below it compiles. */
describe('what does not compile', () => {
  it('a service without a method for one of its operations', () => {
    // @ts-expect-error -- no `list`
    class WithoutList implements Handlers<typeof teams> {
      get(input: Key): Promise<Team> {
        return Promise.resolve({ name: input.team_id });
      }
    }
    class Whole extends WithoutList implements Handlers<typeof teams> {
      list(_input: Key, { requestId }: CallContext): Promise<Teams> {
        return Promise.resolve({ data: [{ name: requestId }] });
      }
    }
    expect(new Whole()).toBeInstanceOf(WithoutList);
  });

  it('a service whose method takes another input or gives another answer', () => {
    class Wrong implements Handlers<typeof teams> {
      // @ts-expect-error -- takes a Team
      get(input: Team): Promise<Team> {
        return Promise.resolve(input);
      }
      // @ts-expect-error -- answers with a Team
      list(): Promise<Team> {
        return Promise.resolve({ name: '' });
      }
    }
    expect(Wrong).toBeDefined();
  });

  it('a handler that takes another input, another context, or gives another answer, or none', () => {
    class Controller {
      @Handle(teams.get)
      get(input: Key, context: CallContext): Promise<Team> {
        return Promise.resolve({ name: input.team_id + context.requestId });
      }
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
    expect(Controller).toBeDefined();
  });

  it('a call with another input, without a context, or whose answer is taken for another', () => {
    const calls = async (rpc: Rpc, context: CallContext): Promise<string> => {
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
    expect(calls).toBeDefined();
  });
});
