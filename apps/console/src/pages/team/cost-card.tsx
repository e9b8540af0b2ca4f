import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Range } from '../../api/bill.js';
import { reportQuery } from '../../api/billing-queries.js';
import type { Schemas } from '../../api/client.js';
import { Sparkline } from '../../charts/bar-chart.js';
import { minorDigits, money, percent } from '../../format/format.js';
import { approximate, roundToAddUp, sum } from '../../format/money.js';
import { addDays, addMonths, dayIn } from '../../format/zone.js';
import { useNow } from '../../parts/now.js';
import { Card, Figure } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { useUser } from '../../api/user-context.js';
import { forecast } from './forecast.js';
import { changeOfSameDays } from './same-days.js';

type Report = Schemas['BillingReport'];

/** This month beside the last one, and where it goes at the present rate. */
export function CostCard({ teamId }: { teamId: string }) {
  const { timezone } = useUser();
  const today = dayIn(useNow(), timezone);
  const month = `${today.slice(0, 7)}-01`;
  const range: Range = { from: addMonths(month, -1), to: today, interval: 'daily', timezone: 'local' };
  const day: Range = { from: addDays(today, -1), to: today, interval: 'hourly', timezone: 'local' };
  const days = useQuery(reportQuery(teamId, range));
  const hours = useQuery(reportQuery(teamId, day));
  return (
    <Card
      title="Cost"
      actions={
        <Link to="/teams/$teamId/billing" params={{ teamId }} className="button" data-small="true">
          Open the bill
        </Link>
      }
    >
      <Loaded query={days} height={150}>
        {(report) => <Costs report={report} hours={hours.data} month={month} />}
      </Loaded>
    </Card>
  );
}

function Costs({ report, hours, month }: { report: Report; hours: Report | undefined; month: string }) {
  const { currency, intervals, timezone, as_of } = report;
  const isThisMonth = ({ start }: { start: string }) => start.slice(0, 10) >= month;
  const costs = (own: Report['intervals']) => own.map(({ cost }) => cost);
  const thisMonth = intervals.filter(isThisMonth);
  const lastMonth = intervals.filter((bucket) => !isThisMonth(bucket));
  const last = sum(costs(lastMonth));
  const now = sum(costs(thisMonth));
  const shown = (amount: string) => money(roundToAddUp([amount], minorDigits(currency))[0] ?? '0', currency);
  const change = changeOfSameDays(thisMonth, lastMonth);
  const expected = hours && forecast(approximate(now), hours.intervals, as_of, addMonths(month, 1), timezone);
  return (
    <div className="stack">
      <dl className="figures">
        <Figure
          name="This month so far"
          value={shown(now)}
          hint={
            change === null
              ? `in the time of ${timezone}`
              : `${percent(change, true)} in its whole days, against the same days of last month`
          }
          isLarge
        />
        <Figure name="Last month" value={shown(last)} />
        <Figure
          name="This month at the present rate"
          value={expected === undefined ? '…' : money(expected.total.toFixed(9), currency)}
          hint={expected === undefined ? undefined : `${money(expected.perDay.toFixed(9), currency)} a day`}
        />
      </dl>
      <Sparkline values={thisMonth.map(({ cost }) => approximate(cost))} label="Cost of each day of this month" />
    </div>
  );
}
