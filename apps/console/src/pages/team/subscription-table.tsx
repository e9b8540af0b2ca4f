import type { ReactNode } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import type { MetricWindow } from '../../api/queries.js';
import { gigabytes, instant, percent } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Field, Toggle } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Table, type Column } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';
import { Utilization } from './utilization.js';

type Subscription = Schemas['MeteredSubscription'];

const touched = ['subscriptions', 'available-pools', 'overview', 'team', 'workloads'];

interface SubscriptionTableProps {
  subscriptions: readonly Subscription[];
  /** Stands in place of none. */
  empty: ReactNode;
  mayChange: boolean;
  /** Over which use is shown. */
  window: MetricWindow;
  isInAddress?: boolean;
  /** Columns that go first. */
  before?: readonly Column<Subscription>[];
}

export function SubscriptionTable(props: SubscriptionTableProps) {
  const { subscriptions, empty, mayChange, window, isInAddress = false, before = [] } = props;
  const { timezone } = useUser();
  const columns: Column<Subscription>[] = [
    {
      title: 'Subscription',
      isHead: true,
      cell: ({ name, pool_name, subscription_id }) => (
        <span className="given">
          {name ?? pool_name}
          <br />
          <span className="hint">
            #{subscription_id} in {pool_name}
          </span>
        </span>
      ),
    },
    ...before,
    {
      title: 'State',
      cell: ({ status, reason }) => (
        <>
          <Chip state={status} />
          {reason !== null && <p className="hint given">{reason}</p>}
        </>
      ),
    },
    {
      title: 'Holds',
      isNumber: true,
      cell: ({ vgpus_allocated, profile, v_ram_gb }) => `${vgpus_allocated} × ${profile} (${gigabytes(v_ram_gb)})`,
    },
    { title: 'GPU', isNumber: true, cell: (row) => figure(row, 'gpu_utilization') },
    {
      title: 'GPU over time',
      cell: ({ subscription_id, name, pool_name }) => (
        <Utilization id={subscription_id} name={name ?? pool_name} window={window} />
      ),
    },
    { title: 'Memory', isNumber: true, cell: (row) => figure(row, 'memory_usage') },
    {
      title: 'Since',
      isWhole: true,
      cell: ({ created_at }) => <time dateTime={created_at}>{instant(created_at, timezone)}</time>,
    },
    ...(mayChange
      ? [{ title: '', cell: (row: Subscription, now: Subscription) => <Actions subscription={row} now={now} /> }]
      : []),
  ];
  return (
    <Table
      label="Subscriptions"
      rows={subscriptions}
      keyOf={({ subscription_id }) => subscription_id}
      findBy={({ subscription_id, name, pool_name, profile, status, reason }) => [
        ...[`#${subscription_id}`, name, pool_name, profile, status, reason],
      ]}
      empty={empty}
      isInAddress={isInAddress}
      columns={columns}
    />
  );
}

function figure({ metrics, metrics_status }: Subscription, name: keyof Subscription['metrics']) {
  return metrics_status === 'no_data' ? <span className="quiet">no samples</span> : percent(metrics[name]);
}

function Actions({ subscription, now }: { subscription: Subscription; now: Subscription }) {
  const { status } = subscription;
  if (status !== 'active' && status !== 'subscribing') return null;
  return (
    <div className="actions">
      {status === 'active' && <Resize subscription={now} />}
      <Unsubscribe subscription={subscription} />
    </div>
  );
}

function Resize({ subscription: { subscription_id, vgpus_allocated, profile } }: { subscription: Subscription }) {
  const params = { path: { subscription_id } };
  return (
    <FormDialog
      title="Resize the subscription"
      trigger={<Button isSmall>Resize</Button>}
      initial={{ vgpus: String(vgpus_allocated) }}
      submit="Resize"
      action={({ vgpus }) =>
        answerOf(api.PUT('/api/gpuaas/pool-subscription/{subscription_id}', { params, body: { vgpus: Number(vgpus) } }))
      }
      invalidates={touched}
      done="The new size was accepted."
    >
      {({ field }) => (
        <Field
          label="vGPUs"
          type="number"
          {...field('vgpus')}
          hint={`Of ${profile}; ${vgpus_allocated} now.`}
          isRequired
        />
      )}
    </FormDialog>
  );
}

function Unsubscribe({ subscription: { subscription_id, name, pool_name } }: { subscription: Subscription }) {
  return (
    <FormDialog
      title="Unsubscribe"
      trigger={
        <Button isSmall kind="danger">
          Unsubscribe
        </Button>
      }
      initial={{ force: false }}
      submit="Unsubscribe"
      kind="danger"
      action={({ force }, header) =>
        answerOf(api.POST('/api/gpuaas/pool/unsubscribe', { params: { header }, body: { subscription_id, force } }))
      }
      invalidates={touched}
      done="The subscription is being ended."
    >
      {({ values, set }) => (
        <>
          <p className="given">Give back what “{name ?? pool_name}” holds? Its billing ends when that is done.</p>
          <Toggle
            label="Stop workloads that still run on it"
            isOn={values.force}
            onChange={(force) => set({ force })}
          />
        </>
      )}
    </FormDialog>
  );
}
