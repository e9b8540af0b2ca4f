import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { gpuaasQuery, regionsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';

export function RegionsPage() {
  const regions = useQuery(regionsQuery);
  const services = useQuery(gpuaasQuery);
  const named = regions.data?.data ?? [];
  return (
    <Page
      title="Regions"
      lead="Where GPUs stand, and the GPU service of each place: a cluster with nodes and pools."
      actions={
        <>
          <CreateService regions={named} />
          <CreateRegion />
        </>
      }
    >
      <Card title="Regions">
        <Loaded query={regions}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="There is no region yet">Create one, then a GPU service in it, and register the nodes that stand there.</Empty>
            ) : (
              <Table
                label="Regions"
                rows={data}
                keyOf={({ region_id }) => region_id}
                columns={[
                  { title: 'Region', isHead: true, cell: ({ region_name }) => <span className="given">{region_name}</span> },
                  {
                    title: 'Place',
                    cell: ({ city, country }) => <span className="given">{[city, country].filter(Boolean).join(', ') || '–'}</span>,
                  },
                  {
                    title: 'GPU services',
                    cell: ({ region_id }) => (
                      <span className="given">
                        {services.data?.data
                          .filter((service) => service.region_id === region_id)
                          .map(({ name }) => name)
                          .join(', ') || '–'}
                      </span>
                    ),
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
    </Page>
  );
}

function CreateRegion() {
  return (
    <ModalBox title="Create a region" trigger={<Button kind="primary">Create a region</Button>}>
      {(close) => <RegionForm close={close} />}
    </ModalBox>
  );
}

function RegionForm({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [city, setCity] = useState('');
  const [country, setCountry] = useState('');
  const body = { region_name: name, ...(city !== '' && { city }), ...(country !== '' && { country }) };
  const create = () => answerOf(api.POST('/api/region', { params: { header }, body }));
  return (
    <ActionForm submit="Create" action={create} invalidates={['regions']} done="The region was created." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.region_name} isRequired />
          <Field label="City" value={city} onChange={setCity} error={problem?.fields.city} />
          <Field label="Country" value={country} onChange={setCountry} error={problem?.fields.country} />
        </>
      )}
    </ActionForm>
  );
}

function CreateService({ regions }: { regions: readonly Schemas['Region'][] }) {
  if (regions.length === 0) return null;
  return (
    <ModalBox title="Create a GPU service" trigger={<Button>Create a GPU service</Button>}>
      {(close) => <ServiceForm regions={regions} close={close} />}
    </ModalBox>
  );
}

function ServiceForm({ regions, close }: { regions: readonly Schemas['Region'][]; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [region_id, setRegion] = useState(regions[0]?.region_id ?? '');
  const [name, setName] = useState('');
  const create = () => answerOf(api.POST('/api/gpuaas', { params: { header }, body: { region_id, name } }));
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['gpuaas']}
      done="The GPU service was created."
      onDone={close}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Chooser
            label="Region"
            value={region_id}
            choices={regions.map((region) => ({ value: region.region_id, label: region.region_name }))}
            onChange={setRegion}
          />
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
        </>
      )}
    </ActionForm>
  );
}
