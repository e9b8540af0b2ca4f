import { expect, it } from '@jest/globals';
import { adminKey, call, createTeam, freshEmail, type Answer, type MemberView } from './client.js';

/**
 * An answer without what differs between any two calls, or was sent by the caller: ids, keys, instants, addresses,
 * limits left.
 */
function comparable({ status, headers, body }: Answer<unknown>, email: string): object {
  const { date: _date, 'x-request-id': _id, ratelimit: _left, ...rest } = headers;
  const text = JSON.stringify(body)
    .replaceAll(email, '<address>')
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/atl_[^"]+/g, '<key>')
    .replaceAll(/#[0-9a-f]{32}[^"]+/g, '#<token>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<instant>');
  return { status, headers: { ...rest, 'content-length': undefined }, text };
}

it('whoever adds a member by their address learns nothing of the account it may have', async () => {
  const { team, keys } = await createTeam('Curious');
  const key = keys.team_owner ?? '';
  const known = freshEmail('known');
  await createTeam('Elsewhere', ['viewer']);
  await call('POST', '/team', {
    key: adminKey,
    body: { name: 'Theirs', members: [{ email: known, name: 'Real Name', role: 'viewer' }] },
  });

  const everything = async (email: string): Promise<object[]> => {
    const path = `/team/${team.id}/members`;
    const added = await call<MemberView>('POST', path, { key, body: { email, name: 'As sent', role: 'member' } });
    const { user_id, api_key } = added.body;
    expect(added.body).toMatchObject({ name: 'As sent', status: 'invited' });
    const answers: Answer<unknown>[] = [
      added,
      await call('POST', path, { key, body: { email, name: 'As sent', role: 'member' } }),
      await call('GET', `/team/${team.id}`, { key }),
      await call('GET', '/user/profile', { key: api_key ?? '' }),
      await call('PUT', `${path}/${user_id}`, { key, body: { role: 'viewer' } }),
      await call('DELETE', `${path}/${user_id}`, { key }),
    ];
    return answers.map((answer) => comparable(answer, email));
  };
  const ofKnown = await everything(known);
  expect(await everything(freshEmail('known'))).toEqual(ofKnown);
  expect(JSON.stringify(ofKnown)).not.toContain('Real Name');
});
