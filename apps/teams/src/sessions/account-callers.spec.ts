import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Operation } from '@atoll/contracts';
import {
  credentials,
  invitations,
  links,
  passkeys,
  passwords,
  secondFactors,
  sessions,
  singleSignOn,
  users,
} from '@atoll/contracts/teams';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';
import { home, password } from './session-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ publicUrl: 'https://atoll.example.com' });
});
afterAll(() => fixture.stop());

type Asked = [operation: Operation, input: object];

const newPassword = 'another horse battery staple';
const answer = { challenge_id: unknownId, credential: '{}' };

/** What is asked before anybody knows who calls. */
const ofServices: Record<string, Asked> = {
  'logs in': [sessions.logIn, { email: 'ada@example.com', password, ...home }],
  'logs in by a second factor': [secondFactors.logIn, { ticket: 'x', code: '000000', ...home }],
  'begins a log-in by passkey': [passkeys.beginLogIn, {}],
  'logs in by passkey': [passkeys.logIn, { ...answer, ...home }],
  'lists providers of single sign-on': [singleSignOn.list, {}],
  'begins single sign-on': [singleSignOn.begin, { provider: 'x' }],
  'finishes single sign-on': [singleSignOn.finish, { provider: 'x', flow_token: 'x', ...home }],
  'refreshes a session': [sessions.refresh, { refresh_token: 'x', ...home }],
  'logs out': [sessions.logOut, { refresh_token: 'x' }],
  'lists the keys of sessions': [sessions.keys, {}],
  'verifies a session': [sessions.verify, { id: unknownId }],
  'verifies an API key': [credentials.verify, { digest: '0'.repeat(64) }],
  'compares the pepper': [credentials.comparePepper, { fingerprint: '0'.repeat(64) }],
  'asks for a link': [links.reset, { email: 'ada@example.com' }],
  'uses a link': [links.use, { token: 'x', password }],
};

/** What users do about their accounts, whichever teams they are in. */
const ofTheUser: Record<string, Asked> = {
  'changes the profile': [users.updateProfile, { name: 'Ada' }],
  'makes a key of the user as a whole': [users.issueKey, {}],
  'revokes it': [users.revokeKey, {}],
  'begins a second factor': [secondFactors.begin, {}],
  'confirms a second factor': [secondFactors.confirm, { code: '000000' }],
  'removes a second factor': [secondFactors.remove, { code: '000000' }],
  'lists passkeys': [passkeys.list, {}],
  'begins a passkey': [passkeys.begin, {}],
  'adds a passkey': [passkeys.finish, { ...answer, name: 'x' }],
  'removes a passkey': [passkeys.remove, { id: unknownId }],
  'lists sessions': [sessions.list, {}],
  'ends a session': [sessions.end, { id: unknownId }],
  'ends all sessions': [sessions.endAll, {}],
  'changes the password': [passwords.change, { current: password, new: newPassword }],
  'accepts an invitation': [invitations.accept, { team_id: unknownId }],
};

async function refusalsOf(key: string, all: Record<string, Asked>): Promise<Record<string, string[]>> {
  const refusals: Record<string, string[]> = {};
  for (const [name, [operation, input]] of Object.entries(all)) {
    const { code, message } = await errorOf(fixture.call(key, operation, input));
    refusals[name] = [code, message];
  }
  return refusals;
}

const each = (all: Record<string, Asked>, ...refusal: unknown[]) =>
  Object.fromEntries(Object.keys(all).map((name) => [name, refusal]));

describe('an account', () => {
  it('is opened to services alone, and not to the operator either', async () => {
    expect(await refusalsOf(fixture.admin, ofServices)).toEqual(
      each(ofServices, 'forbidden', 'Only a service may call this operation.'),
    );
  });

  it('is changed by its user, and not by a key to one team', async () => {
    const [key = ''] = (await fixture.createTeam('team_owner')).keys;
    const refusal = expect.stringContaining('This key is limited to one team');
    expect(await refusalsOf(key, ofTheUser)).toEqual(each(ofTheUser, 'forbidden', refusal));
  });
});
