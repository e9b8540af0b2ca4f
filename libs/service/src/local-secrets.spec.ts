import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sealer } from '@atoll/seal';
import { loadLocalSecrets } from './local-secrets.js';

describe('the secrets of one machine', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'atoll-secrets-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are made once, kept, and readable by their owner alone', () => {
    const made = loadLocalSecrets(join(folder, 'data'));
    expect(loadLocalSecrets(join(folder, 'data'))).toEqual(made);
    expect(statSync(join(folder, 'data', 'secrets.json')).mode & 0o777).toBe(0o600);
  });

  it('are completed where an earlier release did not have one yet', () => {
    const earlier = { busSecret: 'a bus secret', keyPepper: 'a pepper' };
    writeFileSync(join(folder, 'secrets.json'), JSON.stringify(earlier));
    const completed = loadLocalSecrets(folder);
    expect(completed).toMatchObject(earlier);
    expect(new Sealer(completed.sealKeys).seal('x', 'y')).toContain('v1.k1.');
    expect(loadLocalSecrets(folder)).toEqual(completed);
    expect(statSync(join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
  });

  it('are never made anew over a damaged file: that would void every key', () => {
    writeFileSync(join(folder, 'secrets.json'), '{}');
    expect(() => loadLocalSecrets(folder)).toThrow(/restore it from a backup/);
  });
});
