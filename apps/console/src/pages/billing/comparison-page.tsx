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
/** The names of the two months. */
type Names = readonly [string, string];

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

/** Says of a month that its cost is not yet all of it. */
function nameOf(month: string, thisMonth: string): string {
  return month === thisMonth ? `${monthName(month)} so far` : monthName(month);
}

function Change({ report }: { report: Comparison }) {
  const { start_month: start, end_month: end, currency, change: total, items } = report;
  const shown = shownChange(report);
  const thisMonth = dayIn(useNow(), report.timezone).slice(0, 7);
  const names: Names = [nameOf(start.month, thisMonth), nameOf(end.month, thisMonth)];
  return (
    <>
      <Card title={`From ${names[0]} to ${names[1]}`}>
        <dl className="figures">
          <Figure name={names[0]} value={money(shown.start, currency)} />
          <Figure name={names[1]} value={money(shown.end, currency)} hint={`in the time of ${report.timezone}`} />
          <Figure
            name="Change"
            value={change(shown.change, currency)}
            hint={total.percent === null ? 'The first month cost nothing.' : percent(total.percent, true)}
          />
        </dl>
        {items.length === 0 ? (
          <Empty title="Nothing was billed in either month" />
        ) : (
          <Waterfall label={`How ${names[0]} became ${names[1]}`} steps={stepsOf(report, shown, names)} />
        )}
      </Card>
      {items.length > 0 && <ItemTable currency={currency} shown={shown} names={names} />}
    </>
  );
}

/** First month, what quantity and price changed item by item, second month. */
function stepsOf({ start_month: start, end_month: end, currency }: Comparison, shown: Shown, names: Names): Step[] {
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
      return { id, name, from, to: at, kind: text.startsWith('-') ? 'down' : 'up', text: change(text, currency) };
    });
  return [
    {
      id: 'first',
      name: names[0],
      from: 0,
      to: first,
      kind: 'total',
      text: money(shown.start, currency),
    },
    ...steps,
    {
      id: 'second',
      name: names[1],
      from: 0,
      to: approximate(end.total_cost),
      kind: 'total',
      text: money(shown.end, currency),
    },
  ];
}

interface ItemTableProps {
  currency: string;
  shown: Shown;
  names: Names;
}

function ItemTable({ currency, shown, names }: ItemTableProps) {
  return (
    <Card title="Item by item">
      <Table
        label="Change item by item"
        rows={shown.items}
        keyOf={({ kind, sku }) => `${kind} ${sku}`}
        columns={[
          { title: 'Item', isHead: true, cell: ({ sku }) => <span className="given">{sku}</span> },
          { title: 'Kind', cell: ({ kind }) => kindName(kind) },
          { title: names[0], isNumber: true, cell: ({ start }) => money(start, currency) },
          { title: names[1], isNumber: true, cell: ({ end }) => money(end, currency) },
          { title: 'By quantity', isNumber: true, cell: ({ byQuantity }) => change(byQuantity, currency) },
          { title: 'By price', isNumber: true, cell: ({ byPrice }) => change(byPrice, currency) },
        ]}
      />
    </Card>
  );
}
