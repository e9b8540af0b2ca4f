import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { emailAddress } from './email-address.js';
import { AddMember } from './teams/index.js';
import { readWire } from './validate-wire.js';

it('takes as an address what a field of a request takes as one, in the same spelling', () => {
  const team_id = '01a1fbfa-c6f6-77e9-aebd-42be3c465757';
  const odd = fc.constantFrom('', '\u200b', '\u00a0', '"', '\u202e', '\ud800', 'É', 'e\u0301', '@', 'a'.repeat(300));
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.tuple(fc.emailAddress(), odd, fc.double({ min: 0, max: 1, noNaN: true })).map(([address, part, where]) => {
      const at = Math.round(where * address.length);
      return address.slice(0, at) + part + address.slice(at);
    }),
  );
  fc.assert(
    fc.property(texts, (email) => {
      const { instance, faults } = readWire(AddMember, { team_id, email, name: 'Ada', role: 'member' });
      expect(emailAddress(email)).toBe(faults.length === 0 ? instance.email : undefined);
    }),
  );
});

it.each(['admin\u200b@atoll.local', 'ad min@atoll.local', '"ada"@example.com', 'ada@\ud800.example', 'ada', ''])(
  'knows that %j is none',
  (text) => expect(emailAddress(text)).toBeUndefined(),
);

it('spells an address as one user has it', () => {
  expect(emailAddress('ADA@MÜNCHEN.DE')).toBe('ada@xn--mnchen-3ya.de');
});
