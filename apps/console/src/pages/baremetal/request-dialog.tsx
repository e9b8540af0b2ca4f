import { useState } from 'react';
import { answerOf, api, idempotencyKey } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';

export function RequestDialog({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Request a host" trigger={<Button kind="primary">Request a host</Button>}>
      {(close) => <RequestForm teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function RequestForm({ teamId, close }: { teamId: string; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [model, setModel] = useState('');
  const [gpus, setGpus] = useState('');
  const [cores, setCores] = useState('');
  const [memory, setMemory] = useState('');
  const specs = {
    ...(model !== '' && { gpu_model: model }),
    ...(gpus !== '' && { gpu_count: Number(gpus) }),
    ...(cores !== '' && { cpu_cores: Number(cores) }),
    ...(memory !== '' && { memory_gb: Number(memory) }),
  };
  const request = () => answerOf(api.POST('/api/baremetal/request', { params: { header }, body: { team_id: teamId, name, specs } }));
  return (
    <ActionForm
      submit="Request"
      action={request}
      invalidates={['baremetal']}
      done="The request was accepted."
      onDone={close}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
          <Field label="GPU model" value={model} onChange={setModel} hint="Such as A100-80GB." error={problem?.fields['specs.gpu_model']} />
          <Field label="GPUs, at least" type="number" value={gpus} onChange={setGpus} error={problem?.fields['specs.gpu_count']} />
          <Field label="Cores, at least" type="number" value={cores} onChange={setCores} error={problem?.fields['specs.cpu_cores']} />
          <Field
            label="Memory in GB, at least"
            type="number"
            value={memory}
            onChange={setMemory}
            error={problem?.fields['specs.memory_gb']}
          />
        </>
      )}
    </ActionForm>
  );
}
