import { queryOptions, useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { gpuaasQuery } from '../../api/queries.js';
import { pollMs } from '../../api/query-client.js';
import { useUser } from '../../api/user-context.js';
import { instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Act } from '../../parts/dialogs.js';
import { Held } from '../../parts/held.js';
import { Listing } from '../../parts/listing.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { SetCluster } from './set-cluster.js';

type Cluster = Schemas['Cluster'];

const clusterQuery = (gpuaas_id: string) =>
  queryOptions({
    queryKey: ['clusters', gpuaas_id],
    queryFn: () => answerOf(api.GET('/api/gpuaas/{gpuaas_id}/cluster', { params: { path: { gpuaas_id } } })),
    refetchInterval: pollMs.calm,
  });

export function ClustersPage() {
  const services = useQuery(gpuaasQuery);
  return (
    <Page title="Clusters" lead="The cluster that runs the pods of each GPU service, and its status.">
      <Loaded query={services} height={320}>
        {({ data }) => (
          <Listing
            label="Clusters"
            isInAddress
            rows={data}
            keyOf={({ gpuaas_id }) => gpuaas_id}
            empty={<Empty title="No GPU service yet">Create one in a region; its cluster stands here then.</Empty>}
            findBy={({ name }) => [name]}
            isReadByRow
          >
            {({ rows }) => (
              <div className="stack">
                {rows.map(({ gpuaas_id, name }) => (
                  <ClusterCard key={gpuaas_id} gpuaasId={gpuaas_id} name={name} />
                ))}
              </div>
            )}
          </Listing>
        )}
      </Loaded>
    </Page>
  );
}

function ClusterCard({ gpuaasId, name }: { gpuaasId: string; name: string }) {
  const cluster = useQuery(clusterQuery(gpuaasId));
  return (
    <Card
      title={name}
      isRow
      actions={
        <Held of={cluster.data}>
          {(data) => (
            <>
              <Act
                label="Check"
                action={() =>
                  answerOf(
                    api.POST('/api/gpuaas/{gpuaas_id}/cluster/check', { params: { path: { gpuaas_id: gpuaasId } } }),
                  )
                }
                invalidates={['clusters']}
                done={`${name} was checked.`}
              />
              <SetCluster cluster={data} name={name} />
            </>
          )}
        </Held>
      }
    >
      <Loaded query={cluster} height={180}>
        {(data) => <ClusterFacts cluster={data} />}
      </Loaded>
    </Card>
  );
}

function ClusterFacts({ cluster }: { cluster: Cluster }) {
  const { driver, status, since, public_host, socket, url, checks, capabilities } = cluster;
  const { timezone } = useUser();
  const can = (['vms', 'volumes', 'tls', 'udp'] as const).filter((name) => capabilities[name]);
  const faults = checks.filter(({ ok }) => !ok);
  const words = { vms: 'VMs', volumes: 'shared volumes', tls: 'TLS', udp: 'UDP' };
  return (
    <div className="stack-tight">
      <dl className="figures">
        <Figure
          name="State"
          value={<Chip state={status} />}
          hint={since === null ? 'not checked yet' : `since ${instant(since, timezone)}`}
        />
        <Figure name="Driver" value={driver} hint={<span className="given">{socket ?? url ?? ''}</span>} />
        <Figure name="Public host" isText value={<code className="given">{public_host}</code>} />
        <Figure name="Offers" isText value={can.map((name) => words[name]).join(', ') || 'pods alone'} />
      </dl>
      {faults.map(({ name, detail, how_to_fix }) => (
        <div key={name} className="problem">
          <strong className="given">{detail}</strong>
          {how_to_fix !== null && <p className="given">{how_to_fix}</p>}
        </div>
      ))}
    </div>
  );
}
