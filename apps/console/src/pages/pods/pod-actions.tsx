import { answerOf, api, type Schemas } from '../../api/client.js';
import { Act } from '../../parts/dialogs.js';
import { Ask } from '../../parts/form-dialog.js';

const touched = ['pods', 'services', 'workloads', 'subscriptions'];

/** What can be done with a pod in its state. */
export function PodActions({ pod, onDeleted }: { pod: Schemas['Pod']; onDeleted?: () => void }) {
  const { pod_name, name, status, deleted_at } = pod;
  const act = (action: 'start' | 'stop' | 'restart') => () =>
    answerOf(api.POST('/api/pods/action', { body: { pod_name, action } }));
  const isDown = status === 'stopped' || status === 'failed';
  if (deleted_at) return null;
  return (
    <div className="actions">
      {isDown && (
        <Act
          label="Start"
          kind="primary"
          action={act('start')}
          invalidates={touched}
          done={`${name} is being started.`}
        />
      )}
      {status === 'running' && (
        <Act label="Restart" action={act('restart')} invalidates={touched} done={`${name} is being restarted.`} />
      )}
      {!isDown && status !== 'stopping' && (
        <Act label="Stop" action={act('stop')} invalidates={touched} done={`${name} is being stopped.`} />
      )}
      <Ask
        title={`Delete ${name}`}
        question={<p>The pod and its exposed services are deleted permanently; data on volumes stays.</p>}
        submit="Delete"
        action={() => answerOf(api.DELETE('/api/pods/{pod_name}', { params: { path: { pod_name } } }))}
        invalidates={touched}
        done={`${name} is being deleted.`}
        {...(onDeleted && { onDone: onDeleted })}
      />
    </div>
  );
}
