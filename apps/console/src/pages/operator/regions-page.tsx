import { useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { gpuaasQuery, regionsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { Chooser, Field } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';

export function RegionsPage() {
  const regions = useQuery(regionsQuery);
  const services = useQuery(gpuaasQuery);
  const named = regions.data?.data ?? [];
  const servicesOf = Map.groupBy(services.data?.data ?? [], ({ region_id }) => region_id);
  const serviceNames = (regionId: string) => servicesOf.get(regionId)?.map(({ name }) => name) ?? [];
  return (
    <Page
      title="Regions"
      lead="Locations of GPUs, each with a GPU service: a cluster with nodes and pools."
      actions={
        <>
          <CreateService regions={named} />
          <CreateRegion />
        </>
      }
    >
      <Card title="Regions">
        <Loaded query={regions}>
          {({ data }) => (
            <Table
              label="Regions"
              isInAddress
              rows={data}
              keyOf={({ region_id }) => region_id}
              findBy={({ region_id, region_name, city, country }) => [
                ...[region_name, city, country],
                ...serviceNames(region_id),
              ]}
              empty={
                <Empty title="There is no region yet">
                  Create one, then a GPU service in it, and register its nodes.
                </Empty>
              }
              columns={[
                {
                  title: 'Region',
                  isHead: true,
                  cell: ({ region_name }) => <span className="given">{region_name}</span>,
                },
                {
                  title: 'Place',
                  cell: ({ city, country }) => (
                    <span className="given">{[city, country].filter(Boolean).join(', ') || '–'}</span>
                  ),
                },
                {
                  title: 'GPU services',
                  cell: ({ region_id }) => <span className="given">{serviceNames(region_id).join(', ') || '–'}</span>,
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

function CreateRegion() {
  return (
    <FormDialog
      title="Create a region"
      trigger={<Button kind="primary">Create a region</Button>}
      initial={{ name: '', city: '', country: '' }}
      submit="Create"
      action={({ name, city, country }, header) => {
        const body = { region_name: name, ...(city !== '' && { city }), ...(country !== '' && { country }) };
        return answerOf(api.POST('/api/region', { params: { header }, body }));
      }}
      invalidates={['regions']}
      done="The region was created."
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name', 'region_name')} isRequired />
          <Field label="City" {...field('city')} />
          <Field label="Country" {...field('country')} />
        </>
      )}
    </FormDialog>
  );
}

function CreateService({ regions }: { regions: readonly Schemas['Region'][] }) {
  if (regions.length === 0) return null;
  return (
    <FormDialog
      title="Create a GPU service"
      trigger={<Button>Create a GPU service</Button>}
      initial={{ region_id: regions[0]?.region_id ?? '', name: '' }}
      submit="Create"
      action={(body, header) => answerOf(api.POST('/api/gpuaas', { params: { header }, body }))}
      invalidates={['gpuaas']}
      done="The GPU service was created."
    >
      {({ field }) => (
        <>
          <Chooser
            label="Region"
            {...field('region_id')}
            choices={regions.map(({ region_id, region_name }) => ({ value: region_id, label: region_name }))}
          />
          <Field label="Name" {...field('name')} isRequired />
        </>
      )}
    </FormDialog>
  );
}
