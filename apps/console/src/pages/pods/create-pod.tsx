import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { subscriptionsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, TextArea } from '../../parts/fields.js';
import { Empty, Loaded } from '../../parts/states.js';
import { emptyTerms, podBody, type PodTerms, type TextTerm } from './pod-terms.js';
import { VolumeChooser } from './volume-chooser.js';

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
  const [terms, setTerms] = useState<PodTerms>({ ...emptyTerms, subscription: subscriptions[0]?.subscription_id ?? '' });
  const create = () => answerOf(api.POST('/api/pods', { params: { header }, body: podBody(teamId, terms) }));
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
      {(problem) => {
        const field = (name: TextTerm) => ({ value: terms[name], onChange: (value: string) => setTerms({ ...terms, [name]: value }) });
        const { fields = {} } = problem ?? {};
        return (
          <>
            <Field label="Name" {...field('name')} hint="Lower-case letters, digits and hyphens." error={fields.name} isRequired />
            <Field label="Image" {...field('image')} hint="Such as docker.io/library/python:3.13." error={fields.image} isRequired />
            <Chooser
              label="Subscription"
              {...field('subscription')}
              choices={subscriptions.map(({ subscription_id, name: own, pool_name, profile }) => ({
                value: subscription_id,
                label: own ?? pool_name,
                detail: profile,
              }))}
            />
            <Field label="vGPUs" type="number" {...field('vgpus')} error={fields.vgpus} />
            <Field label="Command" {...field('command')} hint="Run by a shell; that of the image unless given." error={fields.command} />
            <Field label="Ports" {...field('ports')} hint="On which it listens; they are exposed one by one." error={fields.ports} />
            <TextArea
              label="Environment"
              {...field('variables')}
              hint="A line each: NAME=value. It is never shown again."
              error={fields.env}
            />
            <VolumeChooser teamId={teamId} {...field('volume')} />
            {terms.volume !== '' && <Field label="Mounted at" {...field('path')} error={fields['volumes.0.path']} isRequired />}
          </>
        );
      }}
    </ActionForm>
  );
}
