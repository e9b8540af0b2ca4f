import { answerOf, api } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Field } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';

const anyHost = { name: '', model: '', gpus: '', cores: '', memory: '' };

export function RequestDialog({ teamId }: { teamId: string }) {
  return (
    <FormDialog
      title="Request a host"
      trigger={<Button kind="primary">Request a host</Button>}
      initial={anyHost}
      keptAs="new host"
      submit="Request"
      action={({ name, model, gpus, cores, memory }, header) => {
        const specs = {
          ...(model !== '' && { gpu_model: model }),
          ...(gpus !== '' && { gpu_count: Number(gpus) }),
          ...(cores !== '' && { cpu_cores: Number(cores) }),
          ...(memory !== '' && { memory_gb: Number(memory) }),
        };
        return answerOf(
          api.POST('/api/baremetal/request', { params: { header }, body: { team_id: teamId, name, specs } }),
        );
      }}
      invalidates={['baremetal']}
      done="The request was accepted."
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Field label="GPU model" {...field('model', 'specs.gpu_model')} hint="Such as A100-80GB." />
          <Field label="GPUs, at least" type="number" {...field('gpus', 'specs.gpu_count')} />
          <Field label="Cores, at least" type="number" {...field('cores', 'specs.cpu_cores')} />
          <Field label="Memory in GB, at least" type="number" {...field('memory', 'specs.memory_gb')} />
        </>
      )}
    </FormDialog>
  );
}
