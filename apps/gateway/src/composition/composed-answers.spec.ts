import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  deadLetters,
  machines,
  type DeadLetterPage,
  type FailedEvent,
  type MachineState,
  type MachineStates,
} from '@atoll/contracts/operator';
import { AppError } from '@atoll/errors';
import { platformServices, type PlatformService } from '@atoll/service-names';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let gateway: GatewayUnderTest;
let key: string;
beforeEach(async () => {
  gateway = await startGateway();
  key = gateway.services.key({ platform_admin: true });
});
afterEach(() => gateway.close());

const state = (service: MachineState['service'], name: string) =>
  ({ service, machine: 'pod', state: name, kind: 'waiting', count: 1 }) as MachineState;

const uuidOf = (number: number) => `01890000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const letter = (service: PlatformService, micros: number, number: number) =>
  ({ service, dead_letter_id: uuidOf(number), cursor: `${micros}_${uuidOf(number)}` }) as FailedEvent;

/** A service with these dead letters, as its library pages them. */
function holds(service: PlatformService, letters: FailedEvent[]): void {
  const place = ({ cursor }: { cursor: string }) => cursor.replace(/^\d+/, (micros) => micros.padStart(16, '0'));
  const sorted = letters.toSorted((one, other) => (place(one) > place(other) ? -1 : 1));
  gateway.services.answer(deadLetters(service).list, ({ cursor, limit = 20 }) => {
    const after = sorted.filter((one) => cursor === undefined || place(one) < place({ cursor }));
    const data = after.slice(0, limit);
    return { data, next_cursor: after.length > limit ? (data.at(-1)?.cursor ?? null) : null };
  });
}

const read = async (query = '') =>
  (await gateway.call<DeadLetterPage>('GET', `/api/operator/dead-letters${query}`, { key })).body;

describe('an answer that is composed of those of several services', () => {
  it('has the states of all of them, in their order', async () => {
    gateway.services.answer(machines('pods').states, () => ({ data: [state('pods', 'pulling')] }));
    gateway.services.answer(machines('gpuaas').states, () => ({ data: [state('gpuaas', 'subscribing')] }));
    const { status, body } = await gateway.call<MachineStates>('GET', '/api/operator/machines', { key });
    expect([status, body.data.map(({ service }) => service)]).toEqual([200, ['gpuaas', 'pods']]);
    expect(body.services).toEqual([
      { service: 'gpuaas', status: 'ok', detail: null },
      { service: 'pods', status: 'ok', detail: null },
    ]);
  });

  it('names a service that is away, that fails, and that never answers, and has what the others say', async () => {
    gateway.services.answer(machines('gpuaas').states, () => ({ data: [state('gpuaas', 'subscribing')] }));
    const outages = {
      unavailable: () => Promise.reject(new AppError('unavailable', 'The database does not answer.')),
      internal: () => Promise.reject(new AppError('internal', 'The service failed.')),
      deadline_exceeded: () => new Promise<never>(() => undefined),
    };
    for (const outage of Object.values(outages)) {
      gateway.services.answer(machines('pods').states, outage);
      const { status, body } = await gateway.call<MachineStates>('GET', '/api/operator/machines', { key });
      expect([status, body.data.length]).toEqual([200, 1]);
      expect(body.services[1]).toEqual({ service: 'pods', status: 'unavailable', detail: expect.stringMatching(/\w/) });
    }
    gateway.services.stop(machines('pods').states);
    const { body } = await gateway.call<MachineStates>('GET', '/api/operator/machines', { key });
    expect(body.services.map(({ status }) => status)).toEqual(['ok', 'unavailable']);
  });

  it('is the operator’s, also where no service is there to refuse it', async () => {
    const stranger = gateway.services.key();
    for (const path of ['machines', 'dead-letters']) {
      const { status, body } = await gateway.call('GET', `/api/operator/${path}`, { key: stranger });
      expect([path, status, body.code]).toEqual([path, 403, 'forbidden']);
    }
  });

  it('asks one service alone where one is named', async () => {
    holds('billing', [letter('billing', 5, 1)]);
    expect(await read('?service=billing')).toMatchObject({
      data: [{ service: 'billing' }],
      services: [{ service: 'billing', status: 'ok' }],
    });
    expect((await gateway.call('GET', '/api/operator/dead-letters?service=elsewhere', { key })).status).toBe(400);
  });

  it('law: pages over all services have each dead letter once, the latest first, whatever the size of a page', async () => {
    const held = fc.array(fc.tuple(fc.constantFrom(...platformServices), fc.integer({ min: 0, max: 3 })), {
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(held, fc.integer({ min: 1, max: 7 }), async (entries, limit) => {
        const letters = entries.map(([service, micros], number) =>
          letter(service, 1_790_000_000_000_000 + micros, number),
        );
        for (const service of platformServices) {
          holds(
            service,
            letters.filter((one) => one.service === service),
          );
        }
        const paged: string[] = [];
        let next: string | null = '';
        while (next !== null) {
          const page: DeadLetterPage = await read(`?limit=${limit}${next && `&cursor=${next}`}`);
          expect(page.data.length).toBeLessThanOrEqual(limit);
          paged.push(...page.data.map(({ cursor }) => cursor));
          next = page.next_cursor;
        }
        expect(paged).toEqual(
          letters
            .map(({ cursor }) => cursor)
            .toSorted()
            .reverse(),
        );
      }),
      runs(50),
    );
  });
});
