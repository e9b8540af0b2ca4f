import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Ask } from '../../parts/form-dialog.js';
import { Toggle } from '../../parts/fields.js';
import { Held } from '../../parts/held.js';
import { Listing } from '../../parts/listing.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { baremetalQuery } from './baremetal-queries.js';
import { Credentials } from './credentials.js';
import { RequestDialog } from './request-dialog.js';

type Instance = Schemas['BaremetalInstance'];

const ended: ReadonlySet<string> = new Set(['Failed', 'Released', 'Cancelled']);

export function BaremetalPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/baremetal' });
  const navigate = useNavigate({ from: '/teams/$teamId/baremetal' });
  const mayUse = may(useUser(), teamId, 'useResources');
  const instances = useQuery(baremetalQuery(teamId, search.ended === 'yes'));
  return (
    <Page
      title="Bare metal"
      lead="Whole hosts with SSH access, billed from Active until released."
      actions={mayUse && <RequestDialog teamId={teamId} />}
    >
      <Toggle
        label="Show what has ended"
        isOn={search.ended === 'yes'}
        onChange={(isOn) => {
          const { ended: _before, ...rest } = search;
          void navigate({ search: isOn ? { ...rest, ended: 'yes' } : rest, replace: true });
        }}
      />
      <Loaded query={instances} height={240}>
        {({ data }) => (
          <Listing
            label="Hosts"
            isInAddress
            rows={data.toReversed()}
            keyOf={({ instance_id }) => instance_id}
            empty={
              <Empty title="The team has no host">
                Request one by what it must have; the platform finds a host that does.
              </Empty>
            }
            findBy={({ name, status, specs, reason }) => [name, status, specsText(specs), reason]}
          >
            {({ rows }) => (
              <div className="stack">
                {rows.map((instance) => (
                  <InstanceCard key={instance.instance_id} instance={instance} mayUse={mayUse} />
                ))}
              </div>
            )}
          </Listing>
        )}
      </Loaded>
    </Page>
  );
}

function specsText({ gpu_model, gpu_count, cpu_cores, memory_gb }: Instance['specs']): string {
  const gpus = gpu_model === undefined && !gpu_count ? [] : [`${gpu_count ?? 1} × ${gpu_model ?? 'GPU'}`];
  return [
    ...gpus,
    ...(cpu_cores === undefined ? [] : [`${cpu_cores} cores`]),
    ...(memory_gb === undefined ? [] : [`${memory_gb} GB`]),
  ].join(', ');
}

function InstanceCard({ instance, mayUse }: { instance: Instance; mayUse: boolean }) {
  const { name, status, reason, error, specs, created_at, unreachable_since } = instance;
  const { timezone } = useUser();
  return (
    <Card
      title={name}
      isRow
      actions={mayUse && <Held of={instance}>{(held, now) => <InstanceActions instance={held} now={now} />}</Held>}
    >
      <p>
        <Chip state={status} />{' '}
        <span className="hint">
          {specsText(specs)} · since {instant(created_at, timezone)}
        </span>
      </p>
      {unreachable_since !== null && (
        <p className="notice">The host cannot be reached since {instant(unreachable_since, timezone)}.</p>
      )}
      {error !== null ? (
        <div className="problem">
          <strong>Provisioning failed at {error.step.replaceAll('_', ' ')}</strong>
          <p className="given">{error.message}</p>
          <p className="small">The host was given back, and nothing is billed. Request another one.</p>
        </div>
      ) : (
        reason !== null && <p className="hint given">{reason}</p>
      )}
      <Ledger attempts={instance.attempts} />
    </Card>
  );
}

/** What can be done with a host in its state. */
function InstanceActions({ instance: { instance_id, name, status }, now }: { instance: Instance; now: Instance }) {
  const isWaiting = status !== 'Active' && now.status !== 'Active';
  return (
    <>
      {status === 'Active' && <Credentials instanceId={instance_id} name={name} />}
      {!ended.has(status) && status !== 'Releasing' && (
        <Ask
          title={isWaiting ? 'Cancel the request' : 'Release the host'}
          question={
            <p className="given">
              {isWaiting
                ? `“${name}” is no longer wanted?`
                : `What “${name}” has on its disks is removed. Its billing ends at once.`}
            </p>
          }
          trigger={
            <Button isSmall kind="danger">
              {isWaiting ? 'Cancel' : 'Release'}
            </Button>
          }
          submit={isWaiting ? 'Cancel the request' : 'Release'}
          action={() => answerOf(api.DELETE('/api/baremetal/{instance_id}', { params: { path: { instance_id } } }))}
          invalidates={['baremetal']}
          done={isWaiting ? 'The request is being cancelled.' : 'The host is being released.'}
        />
      )}
    </>
  );
}

/** What was tried on the host, step by step. */
function Ledger({ attempts }: { attempts: Instance['attempts'] }) {
  const { timezone } = useUser();
  if (attempts.length === 0) return null;
  return (
    <Table
      label="Steps"
      rows={attempts.slice(-12)}
      keyOf={({ attempt_id }) => attempt_id}
      columns={[
        { title: 'Step', isHead: true, cell: ({ action, step }) => `${action}: ${step.replaceAll('_', ' ')}` },
        { title: 'Outcome', cell: ({ outcome }) => <Chip state={outcome} /> },
        { title: 'Began', isWhole: true, cell: ({ started_at }) => instant(started_at, timezone) },
        { title: 'Reason', cell: ({ reason }) => <span className="given">{reason ?? '–'}</span> },
      ]}
    />
  );
}
