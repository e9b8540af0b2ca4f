import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { teamQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';

interface SubscribeProps {
  pool: Schemas['AvailablePool'];
  teamId: string;
}

export function SubscribeDialog({ pool, teamId }: SubscribeProps) {
  return (
    <ModalBox title={`Subscribe to ${pool.pool_name}`} trigger={<Button kind="primary">Subscribe</Button>}>
      {(close) => <SubscribeForm pool={pool} teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function SubscribeForm({ pool, teamId, close }: SubscribeProps & { close: () => void }) {
  const navigate = useNavigate();
  const team = useQuery(teamQuery(teamId));
  const workspaces = team.data?.workspaces ?? [];
  const [header] = useState(idempotencyKey);
  const [profile, setProfile] = useState(pool.profiles[0]?.profile ?? '');
  const [vgpus, setVgpus] = useState('1');
  const [name, setName] = useState('');
  const [workspace, setWorkspace] = useState('');
  const subscribe = () =>
    answerOf(
      api.POST('/api/gpuaas/pool/subscribe', {
        params: { header },
        body: {
          team_id: teamId,
          pool_id: pool.pool_id,
          vgpus: Number(vgpus),
          profile,
          ...(name !== '' && { name }),
          ...(workspace !== '' && { workspace_id: workspace }),
        },
      }),
    );
  return (
    <ActionForm
      submit="Subscribe"
      action={subscribe}
      invalidates={['subscriptions', 'available-pools', 'overview']}
      done="The subscription was accepted."
      onDone={() => {
        close();
        void navigate({ to: '/teams/$teamId/subscriptions', params: { teamId } });
      }}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Chooser
            label="Profile"
            value={profile}
            choices={pool.profiles.map(({ profile: value, available_vgpus }) => ({
              value,
              label: value,
              detail: `${available_vgpus} free`,
            }))}
            onChange={setProfile}
          />
          <Field label="vGPUs" type="number" value={vgpus} onChange={setVgpus} error={problem?.fields.vgpus} isRequired />
          <Field label="Name" value={name} onChange={setName} hint="Optional: what it is for." error={problem?.fields.name} />
          <Chooser
            label="Workspace"
            value={workspace}
            choices={[{ value: '', label: 'Default' }, ...workspaces.map(({ id, name: label }) => ({ value: id, label }))]}
            onChange={setWorkspace}
          />
        </>
      )}
    </ActionForm>
  );
}
