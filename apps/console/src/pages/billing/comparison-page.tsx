import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { comparisonQuery } from '../../api/billing-queries.js';
import type { Schemas } from '../../api/client.js';
import { Waterfall, type Step } from '../../charts/waterfall.js';
import { change, kindName, money, monthName, percent } from '../../format/format.js';
import { approximate, roundToAddUp } from '../../format/money.js';
import { addMonths, dayIn } from '../../format/zone.js';
import { DateField, Segments } from '../../parts/fields.js';
import { useNow } from '../../parts/now.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';

type Comparison = Schemas['ComparisonReport'];

export function ComparisonPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/billing/compare' });
  const navigate = useNavigate({ from: '/teams/$teamId/billing/compare' });
  const user = useUser();
  const zone = search.zone ?? 'local';
  const today = dayIn(useNow(), zone === 'local' ? user.timezone : 'UTC');
  const { second = today.slice(0, 7) } = search;
  const { first = addMonths(`${second}-01`, -1).slice(0, 7) } = search;
  const report = useQuery(comparisonQuery(teamId, first, second, zone));
  const go = (changes: typeof search) => void navigate({ search: { ...search, ...changes }, replace: true });
  return (
    <Page title="Compare months" lead="Why the cost of a month changed: by price and by quantity.">
      <div className="toolbar" role="group" aria-label="Months">
        <DateField label="First month" type="month" value={first} onChange={(value) => go({ first: value })} />
        <DateField label="Second month" type="month" value={second} onChange={(value) => go({ second: value })} />
        {user.timezone !== 'UTC' && (
          <Segments
            label="Zone"
            value={zone}
            choices={[
              { value: 'local', label: user.timezone },
              { value: 'utc', label: 'UTC' },
            ]}
            onChange={(value) => go({ zone: value })}
          />
        )}
      </div>
      <Loaded query={report} height={360}>
        {(data) => <Change report={data} />}
      </Loaded>
    </Page>
  );
}

function Change({ report }: { report: Comparison }) {
  const { start_month: start, end_month: end, currency, change: total, items } = report;
  const shown = (amount: string) => money(roundToAddUp([amount], 2)[0] ?? '0', currency);
  return (
    <>
      <Card title={`From ${monthName(start.month)} to ${monthName(end.month)}`}>
        <dl className="figures">
          <Figure name={monthName(start.month)} value={shown(start.total_cost)} />
          <Figure
            name={monthName(end.month)}
            value={shown(end.total_cost)}
            hint={`in the time of ${report.timezone}`}
          />
          <Figure
            name="Change"
            value={change(total.amount, currency)}
            hint={total.percent === null ? 'The first month cost nothing.' : percent(total.percent, true)}
          />
        </dl>
        {items.length === 0 ? (
          <Empty title="Nothing was billed in either month" />
        ) : (
          <Waterfall label={`How ${monthName(start.month)} became ${monthName(end.month)}`} steps={stepsOf(report)} />
        )}
      </Card>
      {items.length > 0 && <ItemTable report={report} />}
    </>
  );
}

/** First month, what quantity and price changed item by item, second month. */
function stepsOf({ start_month: start, end_month: end, items, currency }: Comparison): Step[] {
  const first = approximate(start.total_cost);
  let at = first;
  const effects = items.flatMap(({ sku, quantity_effect, price_effect }) => [
    { id: `${sku} quantity`, name: `${sku}: quantity`, amount: quantity_effect },
    { id: `${sku} price`, name: `${sku}: price`, amount: price_effect },
  ]);
  const steps = effects
    .filter(({ amount }) => amount !== '0')
    .map(({ id, name, amount }): Step => {
      const from = at;
      at += approximate(amount);
      return { id, name, from, to: at, kind: at < from ? 'down' : 'up', text: change(amount, currency) };
    });
  return [
    {
      id: 'first',
      name: monthName(start.month),
      from: 0,
      to: first,
      kind: 'total',
      text: money(start.total_cost, currency),
    },
    ...steps,
    {
      id: 'second',
      name: monthName(end.month),
      from: 0,
      to: approximate(end.total_cost),
      kind: 'total',
      text: money(end.total_cost, currency),
    },
  ];
}

function ItemTable({ report: { items, currency, start_month: start, end_month: end } }: { report: Comparison }) {
  return (
    <Card title="Item by item">
      <Table
        label="Change item by item"
        rows={items}
        keyOf={({ kind, sku }) => `${kind} ${sku}`}
        columns={[
          { title: 'Item', isHead: true, cell: ({ sku }) => <span className="given">{sku}</span> },
          { title: 'Kind', cell: ({ kind }) => kindName(kind) },
          { title: monthName(start.month), isNumber: true, cell: ({ start_cost }) => money(start_cost, currency) },
          { title: monthName(end.month), isNumber: true, cell: ({ end_cost }) => money(end_cost, currency) },
          { title: 'By quantity', isNumber: true, cell: ({ quantity_effect }) => change(quantity_effect, currency) },
          { title: 'By price', isNumber: true, cell: ({ price_effect }) => change(price_effect, currency) },
        ]}
      />
    </Card>
  );
}
