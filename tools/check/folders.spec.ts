import { describe, expect, it } from '@jest/globals';
import { circleIn, folderImports } from './folders.js';

const project = (files: Record<string, string[]>) =>
  folderImports(
    Object.entries(files).map(([path, imports]) => ({
      path,
      text: imports.map((of) => `import { x } from '${of}';`).join('\n'),
    })),
  );

describe('the folders of a project', () => {
  it('that import downwards are fine, however many paths there are', () => {
    const imports = project({
      'pools/pool.service.ts': ['../model/pool.entity.js', '../leases/lease-store.js', '@atoll/rpc'],
      'leases/lease-store.ts': ['../model/pool.entity.js', './plan.js'],
      'model/pool.entity.ts': ['typeorm'],
    });
    expect(circleIn(imports)).toBeUndefined();
  });

  it('that import each other are named, the shortest circle first, with a file for each import', () => {
    const imports = project({
      'a/one.ts': ['../b/two.js'],
      'b/two.ts': ['../c/three.js', '../d/deep/four.js'],
      'c/three.ts': ['../a/one.js'],
      'd/deep/four.ts': ['../../b/two.js'],
    });
    expect(circleIn(imports)).toBe('b (b/two.ts) → d (d/deep/four.ts)');
  });

  it('are compared at every depth: those beside each other, and each with the files of the one that they are in', () => {
    const siblings = project({
      'old/pools/one.ts': ['../bills/two.js', '../../http/three.js'],
      'old/bills/two.ts': ['../teams/deep/four.js'],
      'old/teams/deep/four.ts': ['../../pools/one.js'],
      'http/three.ts': ['./four.js'],
    });
    expect(circleIn(siblings)).toBe(
      'old/pools (old/pools/one.ts) → old/bills (old/bills/two.ts) → old/teams (old/teams/deep/four.ts)',
    );
    const parent = project({
      'check/tables.ts': ['./statements/statements.js'],
      'check/statements/statements.ts': ['../migrated.js'],
    });
    expect(circleIn(parent)).toBe('check (check/tables.ts) → check/statements (check/statements/statements.ts)');
  });

  it('may import what is in them or what they are in, one way, and files that are outside of the project', () => {
    const imports = project({
      'old/old.module.ts': ['./pools/one.js', './bills/two.js', '../http/three.js'],
      'old/pools/one.ts': ['../bills/two.js', '../bills/deep/four.js', '../../../other/five.js'],
      'old/bills/two.ts': ['./deep/four.js', '../../http/three.js'],
      'old/bills/deep/four.ts': ['../../../http/three.js'],
      'http/three.ts': ['./deep/six.js', '../../other/five.js'],
      'pages/seven/seven.ts': ['../page.js'],
      'pages/eight/eight.ts': ['../page.js'],
    });
    expect(circleIn(imports)).toBeUndefined();
  });

  it('are what ships: specs and fixtures may look anywhere, and what stands beside the folders puts them together', () => {
    const imports = project({
      'a/one.ts': ['../b/two.js', '../settings.js'],
      'b/two.spec.ts': ['../a/one.js'],
      'b/two-fixture.ts': ['../a/one.js'],
      'service.module.ts': ['./a/one.js', './b/two.js'],
      'settings.ts': ['./b/two.js'],
    });
    expect(circleIn(imports)).toBeUndefined();
  });

  it('count an import that is made late', () => {
    expect(
      circleIn(
        folderImports([
          { path: 'a/one.ts', text: `await import('../b/two.js')` },
          { path: 'b/two.ts', text: `export { x } from '../a/one.js';` },
        ]),
      ),
    ).toBe('a (a/one.ts) → b (b/two.ts)');
  });
});
