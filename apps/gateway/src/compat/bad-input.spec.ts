import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { operationsOf, type Method, type Parameter } from '../openapi/operations.js';
import { startCompat, type CompatUnderTest } from './testing/compat-fixture.js';

/**
 * No service answers: what comes through is 503. Each answer is as the document of the mount declares it, or the
 * fixture throws.
 */
let compat: CompatUnderTest;
let key: string;
let operations: { path: string; method: Method; names: (place: string) => string[] }[];
beforeAll(async () => {
  compat = await startCompat();
  key = compat.gateway.services.key({ platform_admin: true });
  operations = operationsOf(compat.document).map(({ path, method, operation }) => ({
    path,
    method,
    names: (place) => (operation.parameters as Parameter[]).filter((one) => one.in === place).map(({ name }) => name),
  }));
});
afterAll(() => compat.close());

const uuid = '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10';
const texts = [
  uuid,
  uuid.toUpperCase(),
  `i-${uuid}`,
  '42',
  '0',
  '-1',
  '007',
  '1e3',
  '1.5',
  '9'.repeat(30),
  'all',
  'utc',
  '',
  ' ',
  '%',
  '\0',
  '😀',
  '\ud800',
];
const times = [
  '2026-10-01',
  '2026-10-01T00:00',
  '2026-02-30T23:59',
  '2026-10-01T25:00',
  '2026-10-01T00:00:00',
  '9999-12-31T23:59',
  'now',
];
const bodies = [
  '""',
  '1',
  'null',
  '[]',
  '[[]]',
  '{}',
  '{"name":[]}',
  '{"email":{}}',
  '{"__proto__":1}',
  '{"constructor":{}}',
  'nonsense',
  '\xff',
];
const understood = new Set([200, 201, 400, 403, 404, 409, 422, 501, 503]);

const sent = (text: string): string => (text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80');
const pathOf = (template: string, text: string): string => template.replace(/\{[^}]+\}/g, sent(text));

describe('whatever comes in any place of any call', () => {
  it.each([...texts, ...times])('is understood or refused in words, in a path: %j', async (text) => {
    const others: unknown[] = [];
    for (const { path, method } of operations) {
      const url = pathOf(path, text);
      // An empty segment is another path.
      if (text === '' && url !== path) continue;
      const { status } = await compat.call(method.toUpperCase(), url, { key, body: '{}' });
      if (!understood.has(status) && status !== 405) others.push([status, method, url]);
    }
    expect(others).toEqual([]);
  });

  it.each([...texts, ...times])('is understood or refused in words, in a query: %j', async (text) => {
    const others: unknown[] = [];
    for (const { path, method, names } of operations.filter((one) => one.names('query').length > 0)) {
      const query = names('query').map((name) => `${encodeURIComponent(name)}=${sent(text)}`);
      for (const asked of [query, ...query.map((one) => [one, one])]) {
        const { status } = await compat.call(method.toUpperCase(), `${pathOf(path, uuid)}?${asked.join('&')}`, { key });
        if (!understood.has(status)) others.push([status, method, path, asked]);
      }
    }
    expect(others).toEqual([]);
  });

  it.each(bodies)('is understood or refused in words, in a body: %s', async (body) => {
    const others: unknown[] = [];
    for (const { path, method } of operations) {
      for (const id of [uuid, '42']) {
        const { status } = await compat.call(method.toUpperCase(), pathOf(path, id), {
          key,
          body: Buffer.from(body, 'latin1'),
        });
        if (!understood.has(status)) others.push([status, method, path]);
      }
    }
    expect(others).toEqual([]);
  });
});
