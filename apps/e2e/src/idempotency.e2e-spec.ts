import { describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, type TeamView } from './client.js';

let sequence = 0;
const fresh = (): string => `story-${process.pid}-${Date.now()}-${++sequence}`;

describe('an Idempotency-Key', () => {
  it('makes one team of two calls, and the second answer shows no key', async () => {
    const headers = { 'idempotency-key': fresh() };
    const body = { name: 'Once' };
    const first = await call<TeamView>('POST', '/team', { key: adminKey, body, headers });
    const second = await call<TeamView>('POST', '/team', { key: adminKey, body, headers });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body.id).toBe(first.body.id);
    expect(first.body.members[0]?.api_key).toMatch(/^atl_[0-9A-Za-z]{38}$/);
    expect(second.body.members[0]?.api_key).toMatch(/^atl_[0-9A-Za-z]{4}…[0-9A-Za-z]{4}$/);
  });

  it('makes one workspace of twenty calls at once; each is told the same or that the first still runs', async () => {
    const { team, keys } = await createTeam('Crowd');
    const headers = { 'idempotency-key': fresh() };
    const body = { team_id: team.id, name: 'training' };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        call<{ id: string }>('POST', '/workspace', { key: keys.team_owner, body, headers }),
      ),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(new Set(made.map((answer) => answer.body.id)).size).toBe(1);
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    const listed = await call<{ data: { name: string }[] }>('GET', `/workspace?team_id=${team.id}`, {
      key: keys.team_owner,
    });
    expect(listed.body.data.map(({ name }) => name).sort()).toEqual(['default', 'training']);
  });

  it('with another body is a mistake, and belongs to its caller alone', async () => {
    const { team, keys } = await createTeam('Mismatch', ['team_owner', 'team_admin']);
    const headers = { 'idempotency-key': fresh() };
    const post = (key: string | undefined, name: string) =>
      call('POST', '/workspace', { key, body: { team_id: team.id, name }, headers });
    expect((await post(keys.team_owner, 'one')).status).toBe(201);
    const mismatch = await post(keys.team_owner, 'two');
    expect([mismatch.status, mismatch.body.code]).toEqual([422, 'idempotency_mismatch']);
    expect((await post(keys.team_admin, 'two')).status).toBe(201);
  });

  it('of a refused call is not kept', async () => {
    const { team, keys } = await createTeam('Refused');
    const headers = { 'idempotency-key': fresh() };
    const post = (name: string) =>
      call('POST', '/workspace', { key: keys.team_owner, body: { team_id: team.id, name }, headers });
    expect((await post('default')).status).toBe(409);
    expect((await post('lab')).status).toBe(201);
  });

  it.each(['', 'x'.repeat(256), 'ключ'])('of the form %j is a 400', async (value) => {
    const headers = { 'idempotency-key': Buffer.from(value, 'utf8').toString('latin1') };
    expect((await call('POST', '/team', { key: adminKey, body: { name: 'x' }, headers })).status).toBe(400);
  });
});
