import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Copy } from '../../parts/copy.js';
import { Act, readAgain } from '../../parts/dialogs.js';
import { Card } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { connectionsQuery } from './pod-queries.js';

/** A refresh that was begun is mostly over by then. */
const refreshMs = 1_000;

async function refresh(team_id: string): Promise<void> {
  await answerOf(api.POST('/api/gpuaas/refresh-connections', { params: { query: { team_id } } }));
  await new Promise((resolve) => setTimeout(resolve, refreshMs));
}

/** How a person reaches the pod from their own machine. */
export function ConnectCard({ pod }: { pod: Schemas['Pod'] }) {
  const { team_id, subscription_id, pod_name, status } = pod;
  const connections = useQuery(connectionsQuery(team_id, subscription_id));
  const known = connections.data?.data.flatMap(({ pods }) => pods).find((candidate) => candidate.pod_name === pod_name);
  // Addresses are what was read last: before this pod began, perhaps.
  const lookUp = useQuery({
    queryKey: ['looked up', pod_name],
    queryFn: async () => {
      await refresh(team_id);
      await readAgain(['connections']);
      return true;
    },
    enabled: status === 'running' && connections.data !== undefined && !known,
    staleTime: Infinity,
    retry: false,
  });
  return (
    <Card
      title="Connect by SSH"
      actions={
        <Act
          label="Look again"
          action={() => refresh(team_id)}
          invalidates={['connections']}
          done="The addresses are being refreshed."
        />
      }
    >
      <Loaded query={connections} height={60}>
        {() => {
          const ssh = known?.ssh;
          if (status !== 'running') return <p className="hint">A pod can be reached only while it runs.</p>;
          if (!known && lookUp.isFetching) return <p className="hint">Its address is being looked up.</p>;
          if (!ssh) {
            const why = known ? 'the operator may have opened no door.' : 'look again in a moment.';
            return <p className="hint">No address for SSH is known: {why}</p>;
          }
          return (
            <div className="stack">
              <div className="secret">
                <code>{ssh.command}</code>
                <Copy name="The command" value={ssh.command} />
              </div>
              <p className="hint">
                It lets in who has one of <Link to="/profile/ssh-keys">their SSH keys</Link> here and may use the pods
                of this team.
              </p>
            </div>
          );
        }}
      </Loaded>
    </Card>
  );
}
