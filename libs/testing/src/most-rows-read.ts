import type { BareServiceUnderTest } from './service-under-test.js';
import type { SentStatement } from './statements-of.js';

interface PlanNode {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** The most rows that any part of the statement's plan reads, or any that reads `table`. The statement is executed. */
export async function mostRowsRead(
  fixture: Pick<BareServiceUnderTest, 'query'>,
  { text, values }: SentStatement,
  table?: string,
): Promise<number> {
  const [row] = await fixture.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
    values,
  );
  const most = (node: PlanNode): number =>
    Math.max(
      table === undefined || table === node['Relation Name']
        ? node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0))
        : 0,
      ...(node.Plans ?? []).map(most),
    );
  const plan = row?.['QUERY PLAN'][0]?.Plan;
  return plan ? most(plan) : 0;
}
