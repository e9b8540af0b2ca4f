import { queryOptions } from '@tanstack/react-query';
import type { Bill, Grouping, Range, Zone } from './bill.js';
import { sum } from '../format/money.js';
import { answerOf, api, type Schemas } from './client.js';
import { pollMs } from './query-client.js';

function pathOf(team_id: string, { from, to, interval, timezone }: Range) {
  const end = new Date(Date.parse(`${to}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
  return { team_id, start_date: `${from}T00:00:00`, end_date: `${end}T00:00:00`, interval, timezone };
}

function readReport(team_id: string, range: Range): Promise<Schemas['BillingReport']> {
  const path = pathOf(team_id, range);
  return answerOf(
    api.GET('/api/team-billing/{team_id}/{start_date}/{end_date}/{interval}/{timezone}', { params: { path } }),
  );
}

type Frame = Omit<Schemas['BillingReport'], 'scope' | 'start' | 'end' | 'interval'>;

function billOf(report: Frame, groups: Bill['groups']): Bill {
  return {
    currency: report.currency,
    timezone: report.timezone,
    asOf: report.as_of,
    total: report.total_cost,
    intervals: report.intervals,
    groups: groups.toSorted((a, b) => Number(b.cost) - Number(a.cost) || a.name.localeCompare(b.name)),
    unpriced: report.unpriced,
  };
}

/** Items of a report as groups: a SKU each, with a cell for each interval. */
function byItem(report: Schemas['BillingReport']): Bill['groups'] {
  const groups = new Map<string, Bill['groups'][number]>();
  for (const [at, bucket] of report.intervals.entries()) {
    for (const item of bucket.items) {
      const id = `${item.kind} ${item.sku}`;
      let group = groups.get(id);
      if (!group) {
        group = { id, name: item.sku, cost: '0', hours: 0, unit: item.unit, cells: report.intervals.map(() => '0') };
        groups.set(id, group);
      }
      group.cells[at] = item.cost;
      group.hours = (group.hours ?? 0) + item.unit_hours;
    }
  }
  for (const group of groups.values()) group.cost = sum(group.cells);
  return [...groups.values()];
}

const cells = (buckets: readonly { cost: string }[]) => buckets.map(({ cost }) => cost);

type Read = (team_id: string, range: Range) => Promise<Bill>;

const readByWorkspace: Read = async (team_id, range) => {
  const path = pathOf(team_id, range);
  const report = await answerOf(
    api.GET('/api/team-billing/group-by-workspace/{team_id}/{start_date}/{end_date}/{interval}/{timezone}', {
      params: { path },
    }),
  );
  const groups = report.workspaces.map((group) => ({
    id: group.workspace_id,
    name: group.workspace_name ?? 'A deleted workspace',
    cost: group.total_cost,
    hours: null,
    unit: null,
    cells: cells(group.intervals),
  }));
  return billOf(report, groups);
};

const readByPool: Read = async (team_id, range) => {
  const path = { ...pathOf(team_id, range), region_id: 'all' };
  const report = await answerOf(
    api.GET('/api/team-billing/gpuaas-pool/{team_id}/{start_date}/{end_date}/{interval}/{region_id}/{timezone}', {
      params: { path },
    }),
  );
  const groups = report.pools.map((group) => ({
    id: group.pool_id,
    name: group.pool_name ?? `Pool ${group.pool_id}`,
    cost: group.total_cost,
    hours: group.vgpu_hours,
    unit: 'vGPU',
    cells: cells(group.intervals),
  }));
  return billOf(report, groups);
};

const readByVolume: Read = async (team_id, range) => {
  const path = { ...pathOf(team_id, range), region_id: 'all' };
  const report = await answerOf(
    api.GET('/api/team-billing/shared-storage/{team_id}/{start_date}/{end_date}/{interval}/{region_id}/{timezone}', {
      params: { path },
    }),
  );
  const groups = report.volumes.map((group) => ({
    id: group.volume_id,
    name: group.name ?? group.volume_id,
    cost: group.total_cost,
    hours: group.gb_hours,
    unit: 'GB',
    cells: cells(group.intervals),
  }));
  return billOf(report, groups);
};

const readByItem: Read = async (team_id, range) => {
  const report = await readReport(team_id, range);
  return billOf(report, byItem(report));
};

const readers: Record<Grouping, Read> = {
  item: readByItem,
  workspace: readByWorkspace,
  pool: readByPool,
  storage: readByVolume,
};

export const billQuery = (team_id: string, range: Range, grouping: Grouping) =>
  queryOptions({
    queryKey: ['bill', team_id, range, grouping],
    queryFn: () => readers[grouping](team_id, range),
    refetchInterval: pollMs.slow,
  });

export const reportQuery = (team_id: string, range: Range) =>
  queryOptions({
    queryKey: ['bill', team_id, range, 'report'],
    queryFn: () => readReport(team_id, range),
    refetchInterval: pollMs.slow,
  });

export const comparisonQuery = (team_id: string, start_month: string, end_month: string, timezone: Zone) =>
  queryOptions({
    queryKey: ['bill', team_id, 'comparison', start_month, end_month, timezone],
    queryFn: () =>
      answerOf(
        api.GET('/api/team-billing/monthly-comparison/{team_id}/{start_month}/{end_month}', {
          params: { path: { team_id, start_month, end_month }, query: { timezone } },
        }),
      ),
  });
