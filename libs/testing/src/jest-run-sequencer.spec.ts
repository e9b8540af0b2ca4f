import { describe, expect, it } from '@jest/globals';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import Sequencer from './jest-run-sequencer.js';

const root = new URL('../../../', import.meta.url).pathname;
const files = globSync('libs/**/*.spec.ts', { cwd: root }).map((file) => ({ path: join(root, file) }));

describe('the order of spec files', () => {
  it('has each of them once', () => {
    const sorted = new Sequencer().sort(files);
    expect(sorted).toHaveLength(files.length);
    expect(new Set(sorted)).toEqual(new Set(files));
  });

  it('begins with long ones, each followed by one that is not, and is the same whatever order they are found in', () => {
    const sorted = new Sequencer().sort(files);
    expect(sorted[0]?.path).toBe(join(root, 'libs/cluster/src/docker/isolation.spec.ts'));
    expect(sorted[2]?.path).toBe(join(root, 'libs/cluster/src/docker/docker-driver.spec.ts'));
    expect(new Sequencer().sort(files.toReversed())).toEqual(sorted);
  });

  it('law: shards have each of them once, and none has more than one file more than another', () => {
    for (let shardCount = 1; shardCount <= 5; shardCount += 1) {
      const shards = Array.from({ length: shardCount }, (_, at) =>
        new Sequencer().shard(files, { shardIndex: at + 1, shardCount }),
      );
      expect(new Set(shards.flat())).toEqual(new Set(files));
      const sizes = shards.map((shard) => shard.length);
      expect([sizes.reduce((sum, size) => sum + size), Math.max(...sizes) - Math.min(...sizes) <= 1]).toEqual([
        files.length,
        true,
      ]);
    }
  });
});
