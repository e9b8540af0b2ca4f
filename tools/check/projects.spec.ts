import { describe, expect, it } from '@jest/globals';
import { aliasProblems, projectProblems } from './projects.js';

const rpc = { root: 'libs/rpc', name: 'rpc', tags: ['type:lib', 'scope:house', 'platform:node'], hasTsconfig: true };

describe('a project', () => {
  it('is fine with its folder for a name and one tag of each axis', () => expect(projectProblems(rpc)).toEqual([]));

  it('of apps/ has its own folder for a scope', () => {
    const teams = { ...rpc, root: 'apps/teams', name: 'teams' };
    expect(projectProblems(teams)).toEqual(['apps/teams: needs one tag of scope:teams']);
    expect(projectProblems({ ...teams, tags: ['type:app', 'scope:teams', 'platform:node'] })).toEqual([]);
  });

  it('is refused where a tag lacks, is unknown, or stands twice', () => {
    expect(projectProblems({ ...rpc, tags: ['type:lib', 'scope:house'] })).toEqual([
      expect.stringContaining('platform:any'),
    ]);
    expect(projectProblems({ ...rpc, tags: ['type:library', 'scope:house', 'platform:node'] })).toEqual([
      expect.stringContaining('type:app'),
    ]);
    expect(projectProblems({ ...rpc, tags: [...rpc.tags, 'type:app'] })).toHaveLength(2);
  });

  it('is refused without project.json or tsconfig.json', () => {
    expect(projectProblems({ root: 'libs/rpc', hasTsconfig: false })).toHaveLength(5);
  });
});

describe('the aliases', () => {
  const paths = { '@atoll/rpc': ['./libs/rpc/src/index.ts'] };

  it('are the libs that exist', () => expect(aliasProblems(['rpc'], { '.swcrc': paths })).toEqual([]));

  it('of contracts have a pattern for the doors of the services', () => {
    const door = { '@atoll/contracts': ['./libs/contracts/src/index.ts'] };
    const doors = { '@atoll/contracts/*': ['./libs/contracts/src/*/index.ts'] };
    expect(aliasProblems(['contracts'], { '.swcrc': { ...door, ...doors } })).toEqual([]);
    expect(aliasProblems(['contracts'], { '.swcrc': door })).toEqual([
      expect.stringContaining('@atoll/contracts/* is missing'),
    ]);
  });

  it('are refused where one lacks, points elsewhere, or has no lib', () => {
    expect(aliasProblems(['rpc', 'gpu'], { '.swcrc': paths })).toEqual([
      expect.stringContaining('@atoll/gpu is missing'),
    ]);
    expect(aliasProblems(['rpc'], { '.swcrc': { '@atoll/rpc': ['./libs/rpc/index.ts'] } })).toHaveLength(1);
    expect(aliasProblems([], { '.swcrc': paths })).toEqual([expect.stringContaining('no such lib')]);
  });
});
