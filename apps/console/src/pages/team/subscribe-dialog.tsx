import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { teamQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { Chooser, Field } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';

interface SubscribeProps {
  pool: Schemas['AvailablePool'];
  teamId: string;
}

export function SubscribeDialog({ pool, teamId }: SubscribeProps) {
  const navigate = useNavigate();
  const { pool_id, pool_name, profiles } = pool;
  return (
    <FormDialog
      title={`Subscribe to ${pool_name}`}
      trigger={<Button kind="primary">Subscribe</Button>}
      initial={{ profile: profiles[0]?.profile ?? '', vgpus: '1', name: '', workspace: '' }}
      keptAs={`pool ${pool_id}`}
      submit="Subscribe"
      action={({ profile, vgpus, name, workspace }, header) => {
        const optional = { ...(name !== '' && { name }), ...(workspace !== '' && { workspace_id: workspace }) };
        const body = { team_id: teamId, pool_id, vgpus: Number(vgpus), profile, ...optional };
        return answerOf(api.POST('/api/gpuaas/pool/subscribe', { params: { header }, body }));
      }}
      invalidates={['subscriptions', 'available-pools', 'overview']}
      done="The subscription was accepted."
      onDone={() => void navigate({ to: '/teams/$teamId/subscriptions', params: { teamId } })}
    >
      {({ field }) => (
        <>
          <Chooser
            label="Profile"
            {...field('profile')}
            choices={profiles.map(({ profile: value, available_vgpus }) => ({
              ...{ value, label: value },
              detail: `${available_vgpus} free`,
            }))}
          />
          <Field label="vGPUs" type="number" {...field('vgpus')} isRequired />
          <Field label="Name" {...field('name')} hint="Optional: what it is for." />
          <WorkspaceChooser teamId={teamId} {...field('workspace')} />
        </>
      )}
    </FormDialog>
  );
}

function WorkspaceChooser({
  teamId,
  ...field
}: {
  teamId: string;
  value: string;
  onChange: (workspace: string) => void;
}) {
  const team = useQuery(teamQuery(teamId));
  const workspaces = team.data?.workspaces ?? [];
  // The first is the one that a team is made with: its default, whatever it is called now.
  const choices = workspaces.map(({ id, name }, at) => ({ value: at === 0 ? '' : id, label: name }));
  return <Chooser label="Workspace" {...field} choices={choices} />;
}
