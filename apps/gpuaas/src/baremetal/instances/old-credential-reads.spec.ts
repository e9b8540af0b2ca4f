import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { OldCredentialReads } from './old-credential-reads.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ historyRetentionDays: 30 });
});
afterAll(() => fixture.stop());

const insert = (actor: string, count: number, days: number) =>
  fixture.gpuaas.query(
    `INSERT INTO baremetal_credential_read (instance_id, actor, request_id, at)
     SELECT gen_random_uuid(), $1, 'request', clock_timestamp() - make_interval(days => $3::int) FROM generate_series(1, $2::int)`,
    [actor, count, days],
  );
const removeSome = () => fixture.gpuaas.get(OldCredentialReads).removeSome();

it('who read a password is known for ATOLL_HISTORY_RETENTION days, and no longer, however often it was read', async () => {
  await insert('user:old', 1_500, 31);
  await insert('user:late', 1, 29);
  expect([await removeSome(), await removeSome()]).toEqual([true, false]);
  expect(await fixture.gpuaas.query('SELECT actor FROM baremetal_credential_read')).toEqual([{ actor: 'user:late' }]);
});

it('a look for old reads reads no more than it may remove, however many are kept', async () => {
  await insert('user:late', 5_000, 1);
  await fixture.gpuaas.query('VACUUM (ANALYZE) baremetal_credential_read');
  const looks = (await allStatementsDuring(removeSome)).filter(({ text }) =>
    text.startsWith('DELETE FROM baremetal_credential_read'),
  );
  expect(looks).toHaveLength(1);
  for (const look of looks) expect(await mostRowsRead(fixture.gpuaas, look)).toBeLessThanOrEqual(1_000);
});
