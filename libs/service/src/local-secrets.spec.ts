import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sealer } from '@atoll/seal';
import { environmentWith, loadLocalSecrets } from './local-secrets.js';

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

  it('need a folder, and what is in its way is said with the variable that names it', () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => loadLocalSecrets(file)).toThrow(/^ATOLL_DATA_DIR cannot be used: .*EEXIST/);
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

  it.each(['{}', '', '{"busSecret":', 'null', '[]'])(
    'are never made anew over a damaged file: that would void every key (%j)',
    (text) => {
      writeFileSync(join(folder, 'secrets.json'), text);
      expect(() => loadLocalSecrets(folder)).toThrow(
        /secrets\.json does not hold the secrets .* restore it from a backup/,
      );
      expect(readFileSync(join(folder, 'secrets.json'), 'utf8')).toBe(text);
    },
  );

  it('are made beside what a process left that ended while it made them', () => {
    // As one that ended while it wrote.
    writeFileSync(join(folder, 'secrets.json.1'), '{"busSec');
    const made = loadLocalSecrets(folder);
    expect(loadLocalSecrets(folder)).toEqual(made);
    expect(readdirSync(folder)).toEqual(['secrets.json', 'secrets.json.1']);
  });

  it('are what the environment lacks, where an empty variable counts as absent', () => {
    const before = process.env;
    process.env = { ATOLL_KEY_PEPPER: 'the pepper of the operator', ATOLL_SEAL_KEYS: '', NATS_URL: '' };
    try {
      expect(environmentWith({ busSecret: 'b', keyPepper: 'p', sealKeys: 's' })).toEqual({
        ATOLL_BUS_SECRET: 'b',
        ATOLL_KEY_PEPPER: 'the pepper of the operator',
        ATOLL_SEAL_KEYS: 's',
      });
      expect(environmentWith()).toEqual({ ATOLL_KEY_PEPPER: 'the pepper of the operator' });
    } finally {
      process.env = before;
    }
  });
});
