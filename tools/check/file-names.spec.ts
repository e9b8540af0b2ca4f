import { describe, expect, it } from '@jest/globals';
import { nameProblems } from './file-names.js';

describe('a file name', () => {
  it.each([
    'apps/teams/src/members/members.service.ts',
    'apps/teams/src/database/migrations/1700000000000-create-teams.ts',
    'apps/pods/src/shared-volumes/shared-volumes.controller.spec.ts',
    'apps/e2e/src/create-team.e2e-spec.ts',
    'apps/e2e/jest.config.ts',
    'libs/rpc/src/index.ts',
    'libs/contracts/src/teams/index.ts',
  ])('%s is fine', (path) => expect(nameProblems(path)).toEqual([]));

  it.each([
    ['apps/teams/src/members/membersService.ts', 'is not kebab-case'],
    ['apps/teams/src/members/members.repository.ts', 'has a suffix beyond'],
    ['apps/teams/src/Members/members.service.ts', 'the folder Members is not kebab-case'],
    ['apps/teams/src/common/page.ts', 'common says nothing'],
    ['libs/shared/src/index.ts', 'shared says nothing'],
    ['libs/rpc/src/date-utils.ts', 'date-utils says nothing'],
    ['apps/teams/src/members/index.ts', 'the one door of a lib'],
    ['libs/rpc/src/nats/index.ts', 'the one door of a lib'],
  ])('%s is refused', (path, reason) => expect(nameProblems(path)).toEqual([expect.stringContaining(reason)]));
});
