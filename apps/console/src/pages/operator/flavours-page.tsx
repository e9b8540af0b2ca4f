import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey } from '../../api/client.js';
import { useUser } from '../../api/user-context.js';
import { gigabytes, instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { flavoursQuery } from '../vms/vm-queries.js';

export function FlavoursPage() {
  const flavours = useQuery(flavoursQuery);
  const { timezone } = useUser();
  return (
    <Page title="VM flavours" lead="The sizes that VMs of all teams may have. Each has a price of its own." actions={<CreateFlavour />}>
      <Loaded query={flavours} height={240}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There is no flavour">Teams can create no VM until there is one.</Empty>
          ) : (
            <Table
              label="VM flavours"
              rows={data}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Flavour', isHead: true, cell: ({ name }) => <span className="given">{name}</span> },
                { title: 'vCPUs', isNumber: true, cell: ({ vcpus }) => vcpus },
                { title: 'Memory', isNumber: true, cell: ({ memory_gb }) => gigabytes(memory_gb) },
                { title: 'Billed as', cell: ({ name }) => <code className="given">vm.{name}</code> },
                { title: 'Created', cell: ({ created_at }) => instant(created_at, timezone) },
              ]}
            />
          )
        }
      </Loaded>
    </Page>
  );
}

function CreateFlavour() {
  return (
    <ModalBox title="Create a flavour" trigger={<Button kind="primary">Create a flavour</Button>}>
      {(close) => <FlavourForm close={close} />}
    </ModalBox>
  );
}

function FlavourForm({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [vcpus, setVcpus] = useState('4');
  const [memory, setMemory] = useState('16');
  const body = { name, vcpus: Number(vcpus), memory_gb: Number(memory) };
  const create = () => answerOf(api.POST('/api/vm/flavour', { params: { header }, body }));
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['flavours']}
      done={`${name} can be chosen now.`}
      onDone={close}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Field
            label="Name"
            value={name}
            onChange={setName}
            hint={`Usage is billed as vm.${name === '' ? 'name' : name}: set a price for it.`}
            error={problem?.fields.name}
            isRequired
          />
          <Field label="vCPUs" type="number" value={vcpus} onChange={setVcpus} error={problem?.fields.vcpus} isRequired />
          <Field label="Memory in GB" type="number" value={memory} onChange={setMemory} error={problem?.fields.memory_gb} isRequired />
        </>
      )}
    </ActionForm>
  );
}
