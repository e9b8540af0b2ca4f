import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Bill, Range } from '../../api/bill.js';
import { billQuery } from '../../api/billing-queries.js';
import { BarChart, Legend, type Series } from '../../charts/bar-chart.js';
import { bucketNames, decimalsOf, instant, kindName, minorDigits, money, quantity } from '../../format/format.js';
import { approximate, roundToAddUp, sum } from '../../format/money.js';
import { Button } from '../../parts/button.js';
import { useNow } from '../../parts/now.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';
import { BillingFilters } from './billing-filters.js';
import type { BillingSearch } from './billing-search.js';
import { BucketTable } from './bucket-table.js';
import { csvOf, download } from './download.js';
import { rangeOf } from './range.js';

const shownSeries = 7;

export function BillingPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/billing' });
  const navigate = useNavigate({ from: '/teams/$teamId/billing' });
  const user = useUser();
  const team = user.teams.find(({ id }) => id === teamId);
  const range = rangeOf(search, user.timezone, useNow());
  const grouping = search.by ?? 'item';
  const bill = useQuery(billQuery(teamId, range, grouping));
  const change = (changes: BillingSearch, without: readonly (keyof BillingSearch)[] = []) => {
    const next = { ...search, ...changes };
    for (const name of without) delete next[name];
    void navigate({ search: next, replace: true });
  };
  return (
    <Page
      title="Billing"
      lead={
        <span className="given">
          What {team?.name ?? 'the team'} held, for how long, and what it cost. Running usage counts up to now.
        </span>
      }
      actions={
        <>
          <Link to="/teams/$teamId/billing/compare" params={{ teamId }} className="button">
            Compare two months
          </Link>
          <Button
            isDisabled={!bill.data}
            onPress={() => {
              if (bill.data) download(`atoll-bill-${range.from}-to-${range.to}-${grouping}.csv`, csvOf(bill.data));
            }}
          >
            Download CSV
          </Button>
        </>
      }
    >
      <BillingFilters range={range} grouping={grouping} zone={user.timezone} onChange={change} />
      <Loaded query={bill} height={420}>
        {(data) => <Report bill={data} range={range} />}
      </Loaded>
    </Page>
  );
}

function Report({ bill, range }: { bill: Bill; range: Range }) {
  const series = seriesOf(bill);
  const format = (value: number, step: number) => money(String(value), bill.currency, decimalsOf(step, bill.currency));
  const starts = bill.intervals.map(({ start }) => start);
  const names = bucketNames(starts, range.interval, bill.timezone);
  const [total = '0'] = roundToAddUp([bill.total], minorDigits(bill.currency));
  return (
    <>
      <Card title="Cost over time">
        <dl className="figures">
          <Figure
            name="Total"
            value={<span data-testid="total">{money(total, bill.currency)}</span>}
            hint={`in the time of ${bill.timezone}, as of ${instant(bill.asOf, bill.timezone)}`}
            isLarge
          />
        </dl>
        {series.length === 0 ? (
          <Empty title="Nothing was billed in this range">Choose another range, or subscribe to a GPU pool.</Empty>
        ) : (
          <>
            <BarChart
              label={`Cost by ${range.interval.replace('ly', '')} interval`}
              buckets={names}
              series={series}
              format={format}
            />
            <Legend series={series} />
          </>
        )}
      </Card>
      {bill.unpriced.length > 0 && <Unpriced bill={bill} />}
      {bill.groups.length > 0 && (
        <div className="columns">
          <GroupTable bill={bill} total={total} />
          <BucketTable bill={bill} names={names} total={total} />
        </div>
      )}
    </>
  );
}

/** The largest groups, and all others as one. */
function seriesOf(bill: Bill): Series[] {
  const priced = bill.groups.filter(({ cost }) => cost !== '0');
  const series = priced
    .slice(0, shownSeries)
    .map(({ id, name, cells }) => ({ id, name, values: cells.map(approximate) }));
  const others = priced.slice(shownSeries);
  if (others.length === 0) return series;
  const values = bill.intervals.map((_, at) => approximate(sum(others.map(({ cells }) => cells[at] ?? '0'))));
  return [...series, { id: 'others', name: `${others.length} others`, values }];
}

function GroupTable({ bill, total }: { bill: Bill; total: string }) {
  const shown = roundToAddUp(
    bill.groups.map(({ cost }) => cost),
    minorDigits(bill.currency),
  );
  const rows = bill.groups.map((group, at) => ({ ...group, shown: shown[at] ?? '0' }));
  return (
    <Card title="By what it was for">
      <Table
        label="Cost by what it was for"
        rows={rows}
        keyOf={({ id }) => id}
        findBy={({ name }) => [name]}
        columns={[
          { title: 'Name', isHead: true, cell: ({ name }) => <span className="given">{name}</span> },
          {
            title: 'Unit hours',
            isNumber: true,
            cell: ({ hours, unit }) => (hours === null ? '–' : `${quantity(hours)} ${unit ?? ''}`),
          },
          { title: 'Cost', isNumber: true, cell: ({ shown: cost }) => money(cost, bill.currency) },
        ]}
        foot={(name) => (
          <>
            <th scope="row">{name}</th>
            <td />
            <td className="number">{money(total, bill.currency)}</td>
          </>
        )}
      />
    </Card>
  );
}

function Unpriced({ bill }: { bill: Bill }) {
  return (
    <Card title="Usage without a price">
      <div className="notice">
        <p>This usage costs nothing until the operator sets a price; then it is rated from the start of that price.</p>
      </div>
      <Table
        label="Usage without a price"
        rows={bill.unpriced}
        keyOf={({ resource_id, sku }) => `${resource_id} ${sku}`}
        findBy={({ resource_id, sku }) => [resource_id, sku]}
        columns={[
          { title: 'Resource', isHead: true, cell: ({ resource_id }) => <span className="given">{resource_id}</span> },
          { title: 'Kind', cell: ({ kind }) => kindName(kind) },
          { title: 'SKU', cell: ({ sku }) => <code>{sku}</code> },
          { title: 'Unit hours', isNumber: true, cell: ({ unit_hours }) => quantity(unit_hours) },
        ]}
      />
    </Card>
  );
}
