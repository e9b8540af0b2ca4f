import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { pricesQuery } from '../../api/queries.js';
import { instant, unitPrice } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Field, Toggle } from '../../parts/fields.js';
import { useNow } from '../../parts/now.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { useUser } from '../../api/user-context.js';

type Price = Schemas['Price'];

export function PricesPage() {
  const prices = useQuery(pricesQuery(false));
  return (
    <Page
      title="Prices"
      lead="Per unit and hour. A price holds from its start until the next one; a price for one team goes before the general one."
      actions={
        <ModalBox title="Set a price" trigger={<Button kind="primary">Set a price</Button>}>
          {(close) => <PriceForm close={close} />}
        </ModalBox>
      }
    >
      <Loaded query={prices} height={320}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="Nothing has a price yet">Usage without a price costs nothing, and every bill lists it.</Empty>
          ) : (
            <div className="stack">
              {[...timelines(data)].map(([key, own]) => (
                <Timeline key={key} prices={own} />
              ))}
            </div>
          )
        }
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
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
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

function PriceForm({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [sku, setSku] = useState('');
  const [unit, setUnit] = useState('vgpu');
  const [price, setPrice] = useState('');
  const [from, setFrom] = useState('');
  const [team, setTeam] = useState('');
  const [force, setForce] = useState(false);
  const body = () => ({
    sku,
    unit,
    unit_price: price,
    valid_from: from === '' ? new Date(Date.now() + 5_000).toISOString() : `${from}:00Z`,
    ...(team !== '' && { team_id: team }),
    ...(force && { force }),
  });
  const set = () => answerOf(api.POST('/api/price', { params: { header }, body: body() }));
  return (
    <ActionForm submit="Set the price" action={set} invalidates={['prices']} done="The price was set." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <Field
            label="SKU"
            value={sku}
            onChange={setSku}
            hint="Such as gpu.A100-80GB.1g.10gb or storage.shared."
            error={problem?.fields.sku}
            isRequired
          />
          <Field label="Unit" value={unit} onChange={setUnit} error={problem?.fields.unit} isRequired />
          <Field label="Price of a unit and hour" value={price} onChange={setPrice} error={problem?.fields.unit_price} isRequired />
          <Field
            label="From (UTC)"
            type="datetime-local"
            value={from}
            onChange={setFrom}
            hint="Now unless given."
            error={problem?.fields.valid_from}
          />
          <Field
            label="Team id"
            value={team}
            onChange={setTeam}
            hint="For one team alone; empty for all."
            error={problem?.fields.team_id}
          />
          <Toggle label="Change what was billed before now" isOn={force} onChange={setForce} />
        </>
      )}
    </ActionForm>
  );
}
