import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { useUser } from '../../api/user-context.js';
import { gigabytes, instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Field } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { flavoursQuery } from '../vms/vm-queries.js';

export function FlavoursPage() {
  const flavours = useQuery(flavoursQuery);
  const { timezone } = useUser();
  return (
    <Page title="VM flavours" lead="Sizes of VMs for all teams. Each has its own price." actions={<CreateFlavour />}>
      <Loaded query={flavours} height={240}>
        {({ data }) => (
          <Table
            label="VM flavours"
            isInAddress
            rows={data}
            keyOf={({ name }) => name}
            findBy={({ name }) => [name]}
            empty={<Empty title="There is no flavour">Teams can create no VM until there is one.</Empty>}
            columns={[
              { title: 'Flavour', isHead: true, cell: ({ name }) => <span className="given">{name}</span> },
              { title: 'vCPUs', isNumber: true, cell: ({ vcpus }) => vcpus },
              { title: 'Memory', isNumber: true, cell: ({ memory_gb }) => gigabytes(memory_gb) },
              { title: 'Billed as', cell: ({ name }) => <code className="given">vm.{name}</code> },
              { title: 'Created', isWhole: true, cell: ({ created_at }) => instant(created_at, timezone) },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}

function CreateFlavour() {
  return (
    <FormDialog
      title="Create a flavour"
      trigger={<Button kind="primary">Create a flavour</Button>}
      initial={{ name: '', vcpus: '4', memory: '16' }}
      submit="Create"
      action={({ name, vcpus, memory }, header) =>
        answerOf(
          api.POST('/api/vm/flavour', {
            params: { header },
            body: { name, vcpus: Number(vcpus), memory_gb: Number(memory) },
          }),
        )
      }
      invalidates={['flavours']}
      done={({ name }) => `${name} can be chosen now.`}
    >
      {({ values: { name }, field }) => (
        <>
          <Field
            label="Name"
            {...field('name')}
            hint={`Usage is billed as vm.${name === '' ? 'name' : name}: set a price for it.`}
            isRequired
          />
          <Field label="vCPUs" type="number" {...field('vcpus')} isRequired />
          <Field label="Memory in GB" type="number" {...field('memory', 'memory_gb')} isRequired />
        </>
      )}
    </FormDialog>
  );
}
