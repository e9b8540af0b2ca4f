import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { imagePolicies, teams, workspaces, type TeamPage } from '@atoll/contracts/teams';
import { Json } from '@atoll/rpc';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, aTeamPage, teamId } from '../testing/team-fixture.js';
import { pageLinks } from './page-links.js';

describe('the links of a page', () => {
  const links = (page: number, total: number, first: 0 | 1 = 0, url = '/x') =>
    pageLinks(url, { page, limit: 10, total }, first);

  it('lead to the first, previous, next and last page', () => {
    expect(links(1, 25)).toBe(
      '</x?page=0&limit=10>; rel="first", </x?page=0&limit=10>; rel="prev", </x?page=2&limit=10>; rel="next", </x?page=2&limit=10>; rel="last"',
    );
    expect(links(2, 25, 1)).toBe(
      '</x?page=1&limit=10>; rel="first", </x?page=1&limit=10>; rel="prev", </x?page=3&limit=10>; rel="next", </x?page=3&limit=10>; rel="last"',
    );
  });

  it('leave out what is not there', () => {
    expect(links(0, 0)).toBe('</x?page=0&limit=10>; rel="first", </x?page=0&limit=10>; rel="last"');
    expect(links(1, 10, 1)).toBe('</x?page=1&limit=10>; rel="first", </x?page=1&limit=10>; rel="last"');
    expect(links(0, 11)).not.toContain('prev');
    expect(links(1, 20)).not.toContain('next');
  });

  it('lead back from past the end to the last page', () =>
    expect(links(1000, 25)).toContain('</x?page=2&limit=10>; rel="prev"'));

  it('keep all other parameters', () => {
    expect(links(0, 25, 0, '/x?team_id=a&page=0&search=a%26b%3F')).toContain(
      '</x?team_id=a&page=1&search=a%26b%3F&limit=10>; rel="next"',
    );
  });
});

describe('a listing', () => {
  let gateway: GatewayUnderTest;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  const linkOf = async (url: string): Promise<string | undefined> =>
    (await gateway.call('GET', url, { key: gateway.services.key() })).headers.link;

  it('has the links, counted from 0 or from 1 as the listing does', async () => {
    gateway.services.answer(teams.list, () => aTeamPage({ page: 0, limit: 5, total: 12 }));
    gateway.services.answer(workspaces.list, () => ({ data: [], pagination: { page: 0, limit: 10, total: 0 } }));
    gateway.services.answer(imagePolicies.list, () => ({ data: [], pagination: { page: 1, limit: 10, total: 11 } }));
    expect(await linkOf('/api/team?limit=5')).toBe(
      '</api/team?limit=5&page=0>; rel="first", </api/team?limit=5&page=1>; rel="next", </api/team?limit=5&page=2>; rel="last"',
    );
    expect(await linkOf(`/api/workspace?team_id=${teamId}`)).toContain(
      `</api/workspace?team_id=${teamId}&page=0&limit=10>; rel="first"`,
    );
    expect(await linkOf('/api/policy/image')).toContain('</api/policy/image?page=2&limit=10>; rel="last"');
  });

  it('whose entries may be large is passed on as it came, in whatever parts, with its links', async () => {
    const name = ',"pagination":{"page":7,"limit":7,"total":7}}';
    const json = `{"data": [${JSON.stringify(aTeam({ name }))}],"pagination":{"page":1,"limit":5,"total":12}}`;
    const links =
      '</api/team?limit=5&page=0>; rel="first", </api/team?limit=5&page=0>; rel="prev", </api/team?limit=5&page=2>; rel="next", </api/team?limit=5&page=2>; rel="last"';
    const bytes = Buffer.from(json);
    const inTwo = [bytes.subarray(0, -20), bytes.subarray(-20)];
    const inBytes = Array.from(bytes, (byte) => Uint8Array.of(byte));
    for (const parts of [[bytes], inTwo, inBytes]) {
      gateway.services.answer(teams.list, () => new Json<TeamPage>(parts));
      for (const method of ['GET', 'HEAD']) {
        const key = gateway.services.key();
        const { status, headers, body } = await gateway.call<unknown>(method, '/api/team?limit=5', { key });
        expect([status, headers.link, headers['content-length']]).toEqual([200, links, String(bytes.length)]);
        expect(headers['content-type']).toBe('application/json; charset=utf-8');
        if (method === 'GET') expect(body).toEqual(JSON.parse(json));
      }
    }
  });

  it('has its links too where its entries come last', async () => {
    const { data, pagination } = aTeamPage({ page: 0, limit: 5, total: 12 });
    gateway.services.answer(teams.list, () => ({ pagination, data }));
    expect(await linkOf('/api/team?limit=5')).toContain('</api/team?limit=5&page=2>; rel="last"');
  });

  it('that is not paged has none', async () => {
    gateway.services.answer(imagePolicies.teamImages, () => ({ data: [] }));
    expect(await linkOf(`/api/policy/image/team/${teamId}/objects`)).toBeUndefined();
  });
});
