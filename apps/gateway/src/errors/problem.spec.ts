import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { expectErrors } from '@atoll/testing';
import { teams } from '@atoll/contracts/teams';
import { AppError, errorCodes, type ErrorCode } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { errorKinds } from './error-kinds.js';

const url = `/api/team/${teamId}`;
let gateway: GatewayUnderTest;
let key: string;
beforeAll(async () => {
  gateway = await startGateway();
  key = gateway.services.key();
  gateway.services.answer(teams.get, () => aTeam());
});
afterAll(() => gateway.close());

const fails = (error: Error): void => {
  gateway.services.answer(teams.get, () => {
    throw error;
  });
};

describe('every error, from whichever layer, is one problem', () => {
  const layers: [string, string, string, object, ErrorCode][] = [
    ['the router', 'GET', '/api/nowhere?a=1#b', {}, 'not_found'],
    ['the router, of a malformed URL', 'GET', '/api/team/%zz?a=1', {}, 'invalid_input'],
    ['the router, outside /api', 'GET', '/nowhere', {}, 'not_found'],
    ['the parser', 'POST', '/api/team', { body: '{' }, 'invalid_input'],
    [
      'the parser, of a type',
      'POST',
      '/api/team',
      { body: 'x', headers: { 'content-type': 'text/plain' } },
      'unsupported_media_type',
    ],
    ['the parser, of a size', 'POST', '/api/team', { body: 'x'.repeat(70_000) }, 'payload_too_large'],
    ['validation', 'POST', '/api/team', { body: {} }, 'invalid_input'],
    ['authentication', 'GET', url, { key: 'none' }, 'unauthenticated'],
    ['the bus', 'GET', '/api/team', {}, 'unavailable'],
  ];

  it.each(layers)('%s', async (_name, method, path, options, code) => {
    const { status, headers, body } = await gateway.call(method, path, { key, ...options });
    const kind = errorKinds[code];
    expect(status).toBe(kind.status);
    expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['cache-control']).toBe('no-store');
    const { errors, ...rest } = body;
    expect(rest).toEqual({
      type: `/api/docs/errors#${code}`,
      title: kind.title,
      status: kind.status,
      detail: expect.stringMatching(/\S/) as unknown,
      instance: path.replace(/[?#].*/, ''),
      code,
      request_id: headers['x-request-id'],
      message: body.detail,
      statusCode: kind.status,
    });
    for (const error of errors ?? []) expect(Object.keys(error)).toEqual(['path', 'code', 'message']);
  });

  it.each(errorCodes.map((code) => [code, errorKinds[code].status] as const))(
    'a service that says %s is answered %i, in its words',
    async (code, status) => {
      const errors = [{ path: 'name', code: 'taken', message: 'name is taken' }];
      fails(new AppError(code, 'In the words of the service.', { errors, retryAfterSeconds: 7 }));
      const { status: answered, body, headers } = await gateway.call('GET', url, { key });
      expect([answered, body.code, body.detail, body.errors, headers['retry-after']]).toEqual([
        status,
        code,
        'In the words of the service.',
        errors,
        '7',
      ]);
    },
  );
});

describe('a service that is away', () => {
  it('is a 503 that says when to try again, though the service did not', async () => {
    fails(new AppError('unavailable', 'Gone.'));
    const { status, headers } = await gateway.call('GET', url, { key });
    expect([status, headers['retry-after']]).toEqual([503, '1']);
  });
});

describe('a service that does not answer', () => {
  it('is a 504 at the deadline', async () => {
    const impatient = await startGateway({ deadlineMs: 500 });
    impatient.services.answer(teams.get, () => new Promise(() => undefined));
    const { status, body } = await impatient.call('GET', url, { key: impatient.services.key() });
    expect([status, body.code]).toEqual([504, 'deadline_exceeded']);
    await impatient.close();
  });
});

describe('an exception that nobody threw on purpose', () => {
  it('is a 500 that tells nothing, and is logged with the id of the request', async () => {
    expectErrors(/password of db-7 is undefined/);
    jest.spyOn(gateway.app.get(Rpc, { strict: false }), 'call').mockImplementation(() => {
      throw new TypeError('password of db-7 is undefined');
    });
    const { status, body } = await gateway.call('GET', '/api/user/profile', {
      key: gateway.services.key(),
      headers: { 'x-request-id': 'a-bug' },
    });
    expect([status, body.code, body.detail, body.request_id]).toEqual([
      500,
      'internal',
      'Something went wrong on our side.',
      'a-bug',
    ]);
    expect(gateway.logged()).toContainEqual(
      expect.objectContaining({
        level: 'error',
        request_id: 'a-bug',
        err: expect.objectContaining({ message: 'password of db-7 is undefined' }) as unknown,
      }),
    );
  });
});
