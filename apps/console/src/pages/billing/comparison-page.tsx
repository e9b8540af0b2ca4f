import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { comparisonQuery } from '../../api/billing-queries.js';
import type { Schemas } from '../../api/client.js';
import { Waterfall, type Step } from '../../charts/waterfall.js';
import { change, kindName, money, monthName, percent } from '../../format/format.js';
import { approximate } from '../../format/money.js';
import { addMonths, dayIn } from '../../format/zone.js';
import { DateField, Segments } from '../../parts/fields.js';
import { useNow } from '../../parts/now.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';
import { shownChange, type ShownChange } from './shown-change.js';

type Comparison = Schemas['ComparisonReport'];
type Shown = ShownChange<Comparison['items'][number]>;

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
  const shown = shownChange(report);
  return (
    <>
      <Card title={`From ${monthName(start.month)} to ${monthName(end.month)}`}>
        <dl className="figures">
          <Figure name={monthName(start.month)} value={money(shown.start, currency)} />
          <Figure
            name={monthName(end.month)}
            value={money(shown.end, currency)}
            hint={`in the time of ${report.timezone}`}
          />
          <Figure
            name="Change"
            value={change(shown.change, currency)}
            hint={total.percent === null ? 'The first month cost nothing.' : percent(total.percent, true)}
          />
        </dl>
        {items.length === 0 ? (
          <Empty title="Nothing was billed in either month" />
        ) : (
          <Waterfall
            label={`How ${monthName(start.month)} became ${monthName(end.month)}`}
            steps={stepsOf(report, shown)}
          />
        )}
      </Card>
      {items.length > 0 && <ItemTable report={report} shown={shown} />}
    </>
  );
}

/** First month, what quantity and price changed item by item, second month. */
function stepsOf({ start_month: start, end_month: end, currency }: Comparison, shown: Shown): Step[] {
  const first = approximate(start.total_cost);
  let at = first;
  const effects = shown.items.flatMap(({ kind, sku, quantity_effect, price_effect, byQuantity, byPrice }) => [
    { id: `${kind} ${sku} quantity`, name: `${sku}: quantity`, amount: quantity_effect, text: byQuantity },
    { id: `${kind} ${sku} price`, name: `${sku}: price`, amount: price_effect, text: byPrice },
  ]);
  const steps = effects
    .filter(({ amount, text }) => amount !== '0' || text !== '0')
    .map(({ id, name, amount, text }): Step => {
      const from = at;
      at += approximate(amount);
      return { id, name, from, to: at, kind: at < from ? 'down' : 'up', text: change(text, currency) };
    });
  return [
    {
      id: 'first',
      name: monthName(start.month),
      from: 0,
      to: first,
      kind: 'total',
      text: money(shown.start, currency),
    },
    ...steps,
    {
      id: 'second',
      name: monthName(end.month),
      from: 0,
      to: approximate(end.total_cost),
      kind: 'total',
      text: money(shown.end, currency),
    },
  ];
}

interface ItemTableProps {
  report: Comparison;
  shown: Shown;
}

function ItemTable({ report: { currency, start_month, end_month }, shown }: ItemTableProps) {
  return (
    <Card title="Item by item">
      <Table
        label="Change item by item"
        rows={shown.items}
        keyOf={({ kind, sku }) => `${kind} ${sku}`}
        columns={[
          { title: 'Item', isHead: true, cell: ({ sku }) => <span className="given">{sku}</span> },
          { title: 'Kind', cell: ({ kind }) => kindName(kind) },
          { title: monthName(start_month.month), isNumber: true, cell: ({ start }) => money(start, currency) },
          { title: monthName(end_month.month), isNumber: true, cell: ({ end }) => money(end, currency) },
          { title: 'By quantity', isNumber: true, cell: ({ byQuantity }) => change(byQuantity, currency) },
          { title: 'By price', isNumber: true, cell: ({ byPrice }) => change(byPrice, currency) },
        ]}
      />
    </Card>
  );
}
