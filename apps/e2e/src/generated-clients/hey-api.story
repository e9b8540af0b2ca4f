import { client } from './hey/client.gen.js';
import {
  createGpuService,
  createPrice,
  createRegion,
  createTeam,
  getTeam,
  getTeamBilling,
  listTeamMembers,
  listTeamSubscriptions,
  recordUsage,
} from './hey/sdk.gen.js';
import type { Problem, TeamRole } from './hey/types.gen.js';

const { ATOLL_URL = '', ATOLL_KEY = '', ATOLL_NAME = '' } = process.env;
client.setConfig({ baseUrl: ATOLL_URL, auth: ATOLL_KEY });

/** The data of a success; a problem is thrown. */
function got<T>({ data, error }: { data?: T | undefined; error?: Problem | undefined }): T {
  if (error || data === undefined) throw new Error(error?.detail ?? 'no data');
  return data;
}

const role: TeamRole = 'billing_viewer';
const team = got(
  await createTeam({ body: { name: ATOLL_NAME, members: [{ email: `${ATOLL_NAME}@example.com`, name: 'Ada', role }] } }),
);
const members = got(await listTeamMembers({ path: { team_id: team.id }, query: { page: 0 } }));
const { region_id } = got(await createRegion({ body: { region_name: ATOLL_NAME } }));
// A numeric id is returned as its digits, and taken as a number as well.
got(await createGpuService({ body: { region_id: Number(region_id), name: ATOLL_NAME } }));
const sku = `generated.${ATOLL_NAME}`;
got(await createPrice({ body: { sku, unit: 'unit', unit_price: '1', valid_from: '2026-10-01T00:00:00Z', force: true } }));
const fact = {
  source: ATOLL_NAME,
  resource_id: 'pod:1',
  kind: 'gpuaas_pool' as const,
  sku,
  team_id: team.id,
  workspace_id: team.workspaces[0]?.id ?? '',
};
const { accepted } = got(
  await recordUsage({
    body: {
      events: [
        { ...fact, id: '1', time: '2026-10-02T00:00:00Z', quantity: 1, pool_id: 7, region_id },
        { ...fact, id: '2', time: '2026-10-03T00:00:00Z', quantity: 0, pool_id: '7', region_id: Number(region_id) },
      ],
    },
  }),
);
const range = { start_date: '2026-10-01T00:00:00', end_date: '2026-11-01T00:00:00', interval: 'daily' as const };
const bill = got(await getTeamBilling({ path: { team_id: team.id, ...range, timezone: 'utc' } }));
const listed = got(await listTeamSubscriptions({ query: { team_id: team.id, gpuaas_id: 1, include_ended: true } }));
const { error } = await getTeam({ path: { team_id: team.policy_info.policy_id } });

console.log(
  JSON.stringify({
    team: team.id,
    members: members.data.map((member) => member.role),
    region: region_id,
    accepted,
    cost: bill.total_cost,
    subscriptionsOfNobody: listed.data.length,
    refusal: error?.code,
  }),
);
