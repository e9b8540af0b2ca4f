import { useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { sendChanges } from '../../parts/changes.js';
import { Chip } from '../../parts/chip.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { Ask, FormDialog } from '../../parts/form-dialog.js';
import { Card } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { exposedServicesQuery } from './pod-queries.js';

type Service = Schemas['ExposedService'];

export function ExposedServices({ podName, mayUse }: { podName: string; mayUse: boolean }) {
  const services = useQuery(exposedServicesQuery(podName));
  return (
    <Card title="Exposed services" actions={mayUse && <ServiceDialog podName={podName} />}>
      <Loaded query={services} height={100}>
        {({ data }) => (
          <Table
            label="Exposed services"
            rows={data}
            keyOf={({ service_id }) => service_id}
            empty={<Empty title="Nothing is exposed">A port of the pod gets an address that others can open.</Empty>}
            columns={columns(podName, mayUse)}
          />
        )}
      </Loaded>
    </Card>
  );
}

function columns(podName: string, mayUse: boolean): Column<Service>[] {
  return [
    {
      title: 'Service',
      isHead: true,
      cell: ({ service_name, port, protocol }) => (
        <span className="given">
          {service_name}
          <br />
          <span className="hint">
            {protocol} on port {port}
          </span>
        </span>
      ),
    },
    {
      title: 'State',
      cell: ({ status, error }) => (
        <>
          <Chip state={status} />
          {error && <p className="hint given">{error.message}</p>}
        </>
      ),
    },
    {
      title: 'Address',
      cell: ({ url, status }) =>
        /^https?:/.test(url) && status === 'active' ? (
          <a href={url} target="_blank" rel="noreferrer">
            {url}
          </a>
        ) : (
          <code>{url}</code>
        ),
    },
    ...(mayUse
      ? [{ title: '', cell: (service: Service) => <ServiceActions service={service} podName={podName} /> }]
      : []),
  ];
}

function ServiceActions({ service, podName }: { service: Service; podName: string }) {
  if (service.status === 'deleting') return null;
  const { service_id, service_name } = service;
  return (
    <div className="actions">
      <ServiceDialog podName={podName} service={service} />
      <Ask
        title={`Close ${service_name}`}
        question={<p>Its address stops working, and may be reused by another service.</p>}
        submit="Delete"
        action={() =>
          answerOf(api.DELETE('/api/pods/delete-exposed-service/{id}', { params: { path: { id: service_id } } }))
        }
        invalidates={['services']}
        done={`${service_name} is being closed.`}
      />
    </div>
  );
}

const protocols = ['HTTP', 'HTTPS', 'TCP', 'UDP'] as const;

function ServiceDialog({ podName, service }: { podName: string; service?: Service }) {
  const initial = {
    ...{ service_name: service?.service_name ?? '', port: String(service?.port ?? '') },
    protocol: service?.protocol ?? ('HTTP' as const),
    external_port: service ? String(service.external_port) : '',
    ssl_enabled: service?.ssl_enabled ?? false,
  };
  return (
    <FormDialog
      title={service ? `Edit ${service.service_name}` : 'Expose a port'}
      trigger={service ? <Button isSmall>Edit</Button> : <Button>Expose a port</Button>}
      initial={initial}
      keptAs={`service ${service?.service_id ?? 'new'}`}
      submit="Save"
      action={({ port, external_port, ...rest }, header, touched): Promise<unknown> => {
        const external = external_port === '' ? {} : { external_port: Number(external_port) };
        const terms = { ...rest, port: Number(port), ...external };
        if (service)
          return sendChanges(terms, touched, (changes) =>
            answerOf(
              api.PUT('/api/pods/update-exposed-service', { body: { service_id: service.service_id, ...changes } }),
            ),
          );
        return answerOf(
          api.POST('/api/pods/expose-service', { params: { header }, body: { pod_name: podName, ...terms } }),
        );
      }}
      invalidates={['services']}
      done="The service was accepted."
    >
      {({ values, field }) => (
        <>
          <Field label="Name" {...field('service_name')} hint="Lower-case letters, digits and hyphens." isRequired />
          <Field label="Port in the pod" type="number" {...field('port')} isRequired />
          <Chooser
            label="Protocol"
            {...field('protocol')}
            choices={protocols.map((value) => ({ value, label: value }))}
          />
          <Field
            label="External port"
            type="number"
            {...field('external_port')}
            hint={service ? 'The port that it has now if left empty.' : 'Any free port if left empty.'}
          />
          <Toggle label="End TLS in front of it" isOn={values.ssl_enabled} {...field('ssl_enabled')} />
        </>
      )}
    </FormDialog>
  );
}
