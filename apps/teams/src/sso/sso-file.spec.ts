import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { readSsoFile } from './sso-file.js';

describe('the file of providers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-sso-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const read = (content: unknown): (() => unknown) => {
    const path = join(folder, 'faulty.json');
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return () => readSsoFile(path);
  };
  const good = { id: 'corp', issuer: 'https://id.example.com', client_id: 'a', client_secret: 'the secret' };
  const grant = { value: 'x', team_id: '0199f3c2-0000-7000-8000-000000000000', role: 'member' };
  it('is taken where nothing is wrong in it', () => {
    expect(read({ providers: [{ ...good, mapping: { grants: [grant] } }] })).not.toThrow();
  });

  it.each<[unknown, RegExp]>([
    ['{', /cannot be read as JSON/],
    [{}, /providers must be a list/],
    [{ providers: [{ ...good, id: 'Corp!' }] }, /providers\[0\]\.id/],
    [{ providers: [{ ...good, issuer: 'http://id.example.com' }] }, /providers\[0\]\.issuer must be an https URL/],
    [{ providers: [{ ...good, client_secret: '' }] }, /client_secret must be a text/],
    [{ providers: [good, good] }, /one id/],
    ...[{ value: 7 }, { team_id: 'y' }, { team_id: 7 }, { role: 'king' }, { role: null }].map(
      (fault): [unknown, RegExp] => [
        { providers: [{ ...good, mapping: { grants: [{ ...grant, ...fault }] } }] },
        /grants\[0\] must have a value/,
      ],
    ),
  ])('names what is wrong in it: %j', (content, message) => {
    expect(read(content)).toThrow(message);
    expect(read(content)).not.toThrow(/the secret/);
  });
});
