import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Copy } from '../../parts/copy.js';
import { Act } from '../../parts/dialogs.js';
import { Card } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { connectionsQuery } from './pod-queries.js';

/** How a person reaches the pod from their own machine. */
export function ConnectCard({ pod }: { pod: Schemas['Pod'] }) {
  const { team_id, subscription_id, pod_name, status } = pod;
  const connections = useQuery(connectionsQuery(team_id, subscription_id));
  return (
    <Card
      title="Connect by SSH"
      actions={
        <Act
          label="Look again"
          action={() => answerOf(api.POST('/api/gpuaas/refresh-connections', { params: { query: { team_id } } }))}
          invalidates={['connections']}
          done="The addresses are read again."
        />
      }
    >
      <Loaded query={connections} height={60}>
        {({ data }) => {
          const ssh = data.flatMap(({ pods }) => pods).find((candidate) => candidate.pod_name === pod_name)?.ssh;
          if (!ssh) {
            return (
              <p className="hint">
                {status === 'running'
                  ? 'No address for SSH is known: the operator may have opened no door.'
                  : 'A pod is reached while it runs.'}
              </p>
            );
          }
          return (
            <div className="stack">
              <div className="secret">
                <code>{ssh.command}</code>
                <Copy name="The command" value={ssh.command} />
              </div>
              <p className="hint">
                It lets in who has one of <Link to="/profile/ssh-keys">their SSH keys</Link> here and may use the pods of this team.
              </p>
            </div>
          );
        }}
      </Loaded>
    </Card>
  );
}
