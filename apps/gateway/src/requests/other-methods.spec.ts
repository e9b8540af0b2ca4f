import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { teamId } from '../testing/team-fixture.js';

let gateway: GatewayUnderTest;
beforeAll(async () => void (gateway = await startGateway()));
afterAll(() => gateway.close());

const methods = ['GET', 'POST', 'PUT', 'DELETE'];

it('law: a path takes the methods that the document gives it, and tells them where it is asked by another one', async () => {
  const key = gateway.services.key();
  const { paths } = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
  // Removed paths are gone by any method.
  const present = Object.entries(paths).filter(
    ([, item]) => !Object.values(item as Record<string, { deprecated?: boolean }>).some(({ deprecated }) => deprecated),
  );
  const byShape = Map.groupBy(present, ([path]) => path.replace(/\{\w+\}/g, teamId));
  const wrong: unknown[] = [];
  const expected: unknown[] = [];
  for (const [path, items] of byShape) {
    const served = items.flatMap(([, item]) => Object.keys(item as object)).map((method) => method.toUpperCase());
    const allow = ['GET', 'HEAD', ...methods].filter(
      (method, at, all) => served.includes(method === 'HEAD' ? 'GET' : method) && all.indexOf(method) === at,
    );
    for (const method of methods.filter((other) => !served.includes(other))) {
      const { status, headers } = await gateway.call(method, path, { key });
      wrong.push([`${method} ${path}`, status, headers.allow]);
      expected.push([`${method} ${path}`, 405, allow.join(', ')]);
    }
  }
  expect(wrong.length).toBeGreaterThan(200);
  expect(wrong).toEqual(expected);
});
