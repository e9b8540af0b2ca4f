import { describe, expect, it } from '@jest/globals';
import { assert, constantFrom, property, record, string } from 'fast-check';
import { parseSecrets, SeenSignatures, Signer, type Signed, type SignedAnswer } from './signature.js';

const secret = 'a secret of the specs';
const signed: Signed = { subject: 'teams.get', reply: '_INBOX.a.1', context: '{"requestId":"1"}', payload: '{}' };
const texts = record({ subject: string(), reply: string(), context: string(), payload: string() });
const fields = ['subject', 'reply', 'context', 'payload'] as const;

describe('a signature', () => {
  it('is verified under the secret that made it, and under no other', () => {
    const signature = new Signer(secret).sign(signed);
    expect(new Signer(secret).verify(signed, signature)).toBe(true);
    expect(new Signer('another secret entirely').verify(signed, signature)).toBe(false);
  });

  it('law: two requests that differ in any part have different signatures, wherever one part ends and the next begins', () => {
    const signer = new Signer(secret);
    assert(
      property(texts, texts, (one, two) => {
        const same = fields.every((field) => one[field] === two[field]);
        return signer.verify(two, signer.sign(one)) === same;
      }),
    );
    const shifted = { ...signed, reply: '_INBOX.a', context: '.1{"requestId":"1"}' };
    expect(signer.verify(shifted, signer.sign(signed))).toBe(false);
  });

  it('law: two messages of answers that differ in any part have different signatures', () => {
    const signer = new Signer(secret);
    const messages = record({
      service: string(),
      kind: constantFrom('json', 'error'),
      part: string(),
      reply: string(),
      previous: string(),
      payload: string(),
    });
    assert(
      property(messages, messages, ({ payload: onePayload, ...one }, { payload: otherPayload, ...other }) => {
        const same = JSON.stringify([one, onePayload]) === JSON.stringify([other, otherPayload]);
        const signature = signer.signAnswer(one, Buffer.from(onePayload));
        return signer.verifyAnswer(other, Buffer.from(otherPayload), signature) === same;
      }),
    );
    const answer: SignedAnswer = { service: 'teams', kind: 'json', part: '1/2', reply: '', previous: 'a' };
    for (const other of [
      { service: 'billing' },
      { kind: 'error' },
      { part: '2/2' },
      { reply: 'x' },
      { previous: 'b' },
    ] as Partial<SignedAnswer>[])
      expect(
        signer.verifyAnswer({ ...answer, ...other }, Buffer.from('{}'), signer.signAnswer(answer, Buffer.from('{}'))),
      ).toBe(false);
  });

  it('of a request is none of an answer', () => {
    const signer = new Signer(secret);
    const answer: SignedAnswer = { service: 'teams', kind: 'json', part: '1/1', reply: '', previous: 'a' };
    const head = `answer ${JSON.stringify(['teams', 'json', '1/1', '', 'a'])}\n`;
    for (const request of [
      { subject: head, reply: '', context: '', payload: '{}' },
      { subject: '', reply: '', context: '', payload: `${head}{}` },
    ])
      expect(signer.verifyAnswer(answer, Buffer.from('{}'), signer.sign(request))).toBe(false);
  });

  it('has one spelling', () => {
    const signer = new Signer(secret);
    const signature = signer.sign(signed);
    for (const respelt of [
      '',
      `${signature}=`,
      ` ${signature}`,
      signature.slice(0, -1),
      signature.toLowerCase(),
      signature.repeat(2),
    ]) {
      expect(signer.verify(signed, respelt)).toBe(false);
    }
  });

  it('outlives the change of secrets: the first signs, all verify', () => {
    const before = new Signer('the secret of last year');
    const during = new Signer(['the secret of this year', 'the secret of last year']);
    const after = new Signer(['the secret of this year']);
    expect(during.verify(signed, before.sign(signed))).toBe(true);
    expect(after.verify(signed, during.sign(signed))).toBe(true);
    expect(after.verify(signed, before.sign(signed))).toBe(false);
  });

  it('law: secrets have one fingerprint each, which a subject may hold and which is no signature', () => {
    const secrets = string({ minLength: 16 });
    assert(
      property(secrets, secrets, (one, two) => {
        const [[first], both] = [new Signer(one).fingerprints, new Signer([two, one]).fingerprints];
        expect(both).toEqual([new Signer(two).fingerprints[0], first]);
        expect(first).toMatch(/^[\w-]{12}$/);
        return (first === both[0]) === (one === two);
      }),
    );
  });

  it('is not made with a secret that could be guessed', () => {
    for (const secrets of ['', 'short', [], [secret, 'short']])
      expect(() => new Signer(secrets)).toThrow('at least 16 characters');
  });
});

describe('signatures that were seen', () => {
  it('are known until their deadline, and forgotten after', () => {
    const seen = new SeenSignatures();
    expect(seen.add('a', 10_500, 9_000)).toBe(true);
    expect(seen.add('a', 10_500, 10_499)).toBe(false);
    expect(seen.add('b', 60_000, 10_499)).toBe(true);
    expect(seen.size).toBe(2);
    expect(seen.add('c', 60_000, 11_000)).toBe(true);
    expect(seen.size).toBe(2);
  });
});

describe('the text of the secrets', () => {
  it('is one secret or several, without the space around them', () => {
    expect(parseSecrets('x'.repeat(16))).toEqual(['x'.repeat(16)]);
    expect(parseSecrets(`${secret}, another ${secret}`)).toEqual([secret, `another ${secret}`]);
  });

  it.each([
    ['', /^ATOLL_BUS_SECRET must be one or more secrets of at least 16 characters, separated by commas\.$/],
    [`,${secret}`, /, separated by commas; entry 1 is not\.$/],
    [`${secret},bbb`, /, separated by commas; entry 2 is not\.$/],
    ['x'.repeat(15), /, separated by commas; entry 1 is not\.$/],
  ])('is refused where an entry is none, as in %j', (text, sentence) => {
    expect(() => parseSecrets(text)).toThrow(sentence);
  });
});
