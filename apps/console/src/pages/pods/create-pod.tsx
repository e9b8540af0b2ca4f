import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { subscriptionsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { DialogEmpty, DialogLoaded, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, TextArea } from '../../parts/fields.js';
import { DialogForm } from '../../parts/form-dialog.js';
import { emptyTerms, podBody, type PodTerms } from './pod-terms.js';
import { VolumeChooser } from './volume-chooser.js';

export function CreatePod({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a pod" trigger={<Button kind="primary">Create a pod</Button>}>
      <Ready teamId={teamId} />
    </ModalBox>
  );
}

function Ready({ teamId }: { teamId: string }) {
  const subscriptions = useQuery(subscriptionsQuery(teamId, 'last_24h'));
  return (
    <DialogLoaded
      query={subscriptions}
      height={200}
      choices={({ data }) => data.filter(({ status }) => status === 'active' || status === 'subscribing')}
      none={<DialogEmpty title="The team has no subscriptions">A pod needs slices: see GPU pools.</DialogEmpty>}
    >
      {(usable) => <PodForm teamId={teamId} subscriptions={usable} />}
    </DialogLoaded>
  );
}

function PodForm({
  teamId,
  subscriptions,
}: {
  teamId: string;
  subscriptions: readonly Schemas['MeteredSubscription'][];
}) {
  const navigate = useNavigate();
  const initial: PodTerms = { ...emptyTerms, subscription: subscriptions[0]?.subscription_id ?? '' };
  return (
    <DialogForm
      initial={initial}
      keptAs="new pod"
      submit="Create"
      action={(terms, header) => answerOf(api.POST('/api/pods', { params: { header }, body: podBody(teamId, terms) }))}
      invalidates={['pods', 'workloads']}
      done="The pod was accepted."
      onDone={({ pod_name }) =>
        void navigate({ to: '/teams/$teamId/pods/$podName', params: { teamId, podName: pod_name } })
      }
    >
      {({ values, field }) => (
        <>
          <Field label="Name" {...field('name')} hint="Lower-case letters, digits and hyphens." isRequired />
          <Field label="Image" {...field('image')} hint="Such as docker.io/library/python:3.13." isRequired />
          <Chooser
            label="Subscription"
            {...field('subscription', 'subscription_id')}
            choices={subscriptions.map(({ subscription_id, name: own, pool_name, profile }) => ({
              value: subscription_id,
              label: own ?? pool_name,
              detail: profile,
            }))}
          />
          <Field label="vGPUs" type="number" {...field('vgpus')} />
          <Field label="Command" {...field('command')} hint="Run by a shell; the image’s command if left empty." />
          <Field label="Ports" {...field('ports')} hint="Ports on which it listens. Expose each one separately." />
          <TextArea
            label="Environment"
            {...field('variables', 'env')}
            hint="One per line: NAME=value. They are never shown again."
          />
          <VolumeChooser teamId={teamId} {...field('volume')} />
          {values.volume !== '' && <Field label="Path in the pod" {...field('path', 'volumes.0.path')} isRequired />}
        </>
      )}
    </DialogForm>
  );
}
