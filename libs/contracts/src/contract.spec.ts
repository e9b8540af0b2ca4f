import { describe, expect, it } from '@jest/globals';
import { contract, operation } from './contract.js';

class Input {
  team_id!: string;
}
class Output {
  name!: string;
}

describe('a contract value', () => {
  it('derives the subject and the service of an operation from its path and its name', () => {
    const members = contract('teams.members', { list: operation(Input, Output) });
    expect(members.list).toEqual({ service: 'teams', subject: 'teams.members.list', input: Input, output: Output });
  });

  it('cannot be changed', () => {
    const teams = contract('teams', { get: operation(Input, Output) });
    expect(Object.isFrozen(teams) && Object.isFrozen(teams.get)).toBe(true);
  });
});
