import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import { queryClient } from '../../api/query-client.js';
import { Act, Refusal } from '../../parts/dialogs.js';
import { Toggle } from '../../parts/fields.js';
import { Ask } from '../../parts/form-dialog.js';
import { say } from '../../parts/toasts.js';

type Vm = Schemas['Vm'];

const touched = ['vms', 'overview'];

/** Whether it starts again when its guest stops by itself: a switch, which holds at once. */
export function AutoRestart({
  vm: { instance_id, name, auto_restart, deleted_at },
  mayUse,
}: {
  vm: Vm;
  mayUse: boolean;
}) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const change = useMutation({
    mutationFn: (isOn: boolean) =>
      answerOf(api.PUT('/api/vm/{instance_id}', { params: { path: { instance_id } }, body: { auto_restart: isOn } })),
    onSuccess: async (vm) => {
      say(
        vm.auto_restart
          ? `${name} starts again when it stops by itself.`
          : `${name} stays stopped when it stops by itself.`,
      );
      await queryClient.invalidateQueries({ queryKey: ['vms'] });
    },
    onError: (error) => setProblem(asProblem(error)),
  });
  return (
    <>
      <Toggle
        label={`Restart ${name} by itself`}
        isLabelHidden
        isOn={change.isPending ? change.variables : auto_restart}
        isDisabled={!mayUse || Boolean(deleted_at) || change.isPending}
        onChange={(isOn) => change.mutate(isOn)}
      />
      <Refusal title="Restart by itself" problem={problem} onClose={() => setProblem(null)} />
    </>
  );
}

/** What can be done with a VM in its state. */
export function VmActions({
  vm: { instance_id, name, status, deleted_at },
  onDeleted,
}: {
  vm: Vm;
  onDeleted?: () => void;
}) {
  const path = { instance_id };
  const params = (header = idempotencyKey()) => ({ params: { path, header } });
  const isDown = status === 'stopped' || status === 'failed';
  if (deleted_at) return null;
  return (
    <div className="actions">
      {isDown && (
        <Act
          label="Start"
          kind="primary"
          action={() => answerOf(api.POST('/api/vm/{instance_id}/start', params()))}
          invalidates={touched}
          done={`${name} is being started.`}
        />
      )}
      {status === 'running' && (
        <Ask
          title={`Restart ${name}`}
          question={<p>Its processes are ended, and it starts again with the same disk.</p>}
          submit="Restart"
          kind="primary"
          action={(_, header) => answerOf(api.POST('/api/vm/{instance_id}/restart', params(header)))}
          invalidates={touched}
          done={`${name} is being restarted.`}
        />
      )}
      {(status === 'running' || status === 'pending') && (
        <Ask
          title={`Stop ${name}`}
          question={<p>Its processes are ended. Its disk stays, and it costs nothing until it is started again.</p>}
          submit="Stop"
          kind="primary"
          action={(_, header) => answerOf(api.POST('/api/vm/{instance_id}/stop', params(header)))}
          invalidates={touched}
          done={`${name} is being stopped.`}
        />
      )}
      <Ask
        title={`Delete ${name}`}
        question={<p>The VM and its disk are deleted permanently; data on shared volumes stays.</p>}
        submit="Delete"
        action={() => answerOf(api.DELETE('/api/vm/{instance_id}', { params: { path } }))}
        invalidates={touched}
        done={`${name} is being deleted.`}
        {...(onDeleted && { onDone: onDeleted })}
      />
    </div>
  );
}
