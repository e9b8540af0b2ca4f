import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { pricesQuery } from '../../api/queries.js';
import { instant, unitPrice } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ModalBox } from '../../parts/dialogs.js';
import { Field, Toggle } from '../../parts/fields.js';
import { DialogForm } from '../../parts/form-dialog.js';
import { Listing } from '../../parts/listing.js';
import { useNow } from '../../parts/now.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { useUser } from '../../api/user-context.js';
import { leadSeconds, PriceStart } from './price-start.js';

type Price = Schemas['Price'];

export function PricesPage() {
  const prices = useQuery(pricesQuery);
  return (
    <Page
      title="Prices"
      lead="Per unit and hour. A price applies from its start until the next one; a price for one team overrides the general one."
      actions={<SetPrice />}
    >
      <Loaded query={prices} height={320}>
        {(data) => (
          <Listing
            label="Prices"
            isInAddress
            rows={[...timelines(data)]}
            keyOf={([key]) => key}
            empty={
              <Empty title="Nothing has a price yet">
                Usage without a price costs nothing, and every bill lists it.
              </Empty>
            }
            findBy={([, [first]]) => [first?.sku, first?.unit, first?.team_id]}
          >
            {({ rows }) => (
              <div className="stack">
                {rows.map(([key, own]) => (
                  <Timeline key={key} prices={own} />
                ))}
              </div>
            )}
          </Listing>
        )}
      </Loaded>
    </Page>
  );
}

/** The prices of each SKU and team, in the order in which they hold. */
function timelines(prices: readonly Price[]): Map<string, Price[]> {
  const ordered = prices.toSorted((a, b) => a.sku.localeCompare(b.sku) || a.valid_from.localeCompare(b.valid_from));
  return Map.groupBy(ordered, ({ sku, team_id }) => `${sku} ${team_id ?? ''}`);
}

function Timeline({ prices }: { prices: readonly Price[] }) {
  const { timezone } = useUser();
  const nowMs = useNow();
  const [first] = prices;
  if (!first) return null;
  const nowAt = prices.findLastIndex(({ valid_from }) => Date.parse(valid_from) <= nowMs);
  return (
    <Card title={first.sku}>
      <p className="hint">
        per {first.unit} and hour{first.team_id !== null && `, for team ${first.team_id} alone`}
      </p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <div className="table-box" role="region" aria-label={`Prices of ${first.sku} over time`} tabIndex={0}>
        <ol className="timeline">
          {prices.map(({ price_id, unit_price, valid_from, currency }, at) => (
            <li key={price_id} {...(at === nowAt && { 'data-now': true })}>
              <strong>{unitPrice(unit_price, currency)}</strong>
              <br />
              <span className="small">
                from {instant(valid_from, timezone)}
                {at === nowAt && ' (now)'}
              </span>
            </li>
          ))}
        </ol>
      </div>
    </Card>
  );
}

const newPrice = { sku: '', unit: 'vgpu', price: '', from: '', team: '', force: false };

function SetPrice() {
  return (
    <ModalBox title="Set a price" trigger={<Button kind="primary">Set a price</Button>}>
      <PriceForm />
    </ModalBox>
  );
}

async function readDate(): Promise<string | null> {
  const call = api.GET('/api/price', { params: { query: { limit: 1 } } });
  await answerOf(call);
  return (await call).response.headers.get('date');
}

function PriceForm() {
  const [start] = useState(() => new PriceStart(readDate));
  return (
    <DialogForm
      initial={newPrice}
      keptAs="new price"
      submit="Set the price"
      action={({ sku, unit, price, from, team, force }, header) => {
        const set = (valid_from: string) => {
          const optional = { ...(team !== '' && { team_id: team }), ...(force && { force }) };
          const body = { sku, unit, unit_price: price, valid_from, ...optional };
          return answerOf(api.POST('/api/price', { params: { header }, body }));
        };
        return from === '' ? start.send(set) : set(`${from}:00Z`);
      }}
      invalidates={['prices']}
      done="The price was set."
    >
      {({ values, set, field }) => (
        <>
          <Field label="SKU" {...field('sku')} hint="Such as gpu.A100-80GB.1g.10gb or storage.shared." isRequired />
          <Field label="Unit" {...field('unit')} isRequired />
          <Field label="Price of a unit and hour" {...field('price', 'unit_price')} isRequired />
          <Field
            label="From (UTC)"
            type="datetime-local"
            {...field('from', 'valid_from')}
            hint={`If left empty: ${leadSeconds} seconds after you first press the button, by the platform’s clock.`}
          />
          <Field label="Team id" {...field('team', 'team_id')} hint="For one team only; empty for all." />
          <Toggle label="Change past bills" isOn={values.force} onChange={(force) => set({ force })} />
        </>
      )}
    </DialogForm>
  );
}
