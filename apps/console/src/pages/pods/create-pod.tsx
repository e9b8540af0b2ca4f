import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { subscriptionsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';
import { Empty, Loaded } from '../../parts/states.js';

export function CreatePod({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a pod" trigger={<Button kind="primary">Create a pod</Button>}>
      {(close) => <Ready teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function Ready({ teamId, close }: { teamId: string; close: () => void }) {
  const subscriptions = useQuery(subscriptionsQuery(teamId, 'last_24h'));
  return (
    <Loaded query={subscriptions} height={200}>
      {({ data }) => {
        const usable = data.filter(({ status }) => status === 'active' || status === 'subscribing');
        if (usable.length === 0) return <Empty title="The team has subscribed to nothing">A pod needs slices: see GPU pools.</Empty>;
        return <PodForm teamId={teamId} subscriptions={usable} close={close} />;
      }}
    </Loaded>
  );
}

interface PodFormProps {
  teamId: string;
  subscriptions: readonly Schemas['MeteredSubscription'][];
  close: () => void;
}

function PodForm({ teamId, subscriptions, close }: PodFormProps) {
  const navigate = useNavigate();
  const [header] = useState(idempotencyKey);
  const [subscription, setSubscription] = useState(subscriptions[0]?.subscription_id ?? '');
  const [name, setName] = useState('');
  const [image, setImage] = useState('');
  const [vgpus, setVgpus] = useState('1');
  const [command, setCommand] = useState('');
  const [ports, setPorts] = useState('');
  const create = () =>
    answerOf(
      api.POST('/api/pods', {
        params: { header },
        body: {
          team_id: teamId,
          subscription_id: subscription,
          name,
          image,
          vgpus: Number(vgpus),
          restart: 'always',
          ...(command.trim() !== '' && { command: ['/bin/sh', '-c', command] }),
          ...(ports.trim() !== '' && {
            ports: ports
              .split(/[\s,]+/)
              .filter(Boolean)
              .map(Number),
          }),
        },
      }),
    );
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['pods', 'workloads']}
      done="The pod was accepted."
      onDone={({ pod_name }) => {
        close();
        void navigate({ to: '/teams/$teamId/pods/$podName', params: { teamId, podName: pod_name } });
      }}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Field
            label="Name"
            value={name}
            onChange={setName}
            hint="Lower-case letters, digits and hyphens."
            error={problem?.fields.name}
            isRequired
          />
          <Field
            label="Image"
            value={image}
            onChange={setImage}
            hint="Such as docker.io/library/python:3.13."
            error={problem?.fields.image}
            isRequired
          />
          <Chooser
            label="Subscription"
            value={subscription}
            choices={subscriptions.map(({ subscription_id, name: own, pool_name, profile }) => ({
              value: subscription_id,
              label: own ?? pool_name,
              detail: profile,
            }))}
            onChange={setSubscription}
          />
          <Field label="vGPUs" type="number" value={vgpus} onChange={setVgpus} error={problem?.fields.vgpus} />
          <Field
            label="Command"
            value={command}
            onChange={setCommand}
            hint="Run by a shell; that of the image unless given."
            error={problem?.fields.command}
          />
          <Field
            label="Ports"
            value={ports}
            onChange={setPorts}
            hint="On which it listens; they are exposed one by one."
            error={problem?.fields.ports}
          />
        </>
      )}
    </ActionForm>
  );
}
