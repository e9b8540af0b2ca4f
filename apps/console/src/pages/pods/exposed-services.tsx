import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { ActionForm, Ask, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { Card } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { exposedServicesQuery } from './pod-queries.js';

type Service = Schemas['ExposedService'];

export function ExposedServices({ podName, mayUse }: { podName: string; mayUse: boolean }) {
  const services = useQuery(exposedServicesQuery(podName));
  return (
    <Card
      title="Exposed services"
      actions={
        mayUse && (
          <ModalBox title="Expose a port" trigger={<Button>Expose a port</Button>}>
            {(close) => <ServiceForm podName={podName} close={close} />}
          </ModalBox>
        )
      }
    >
      <Loaded query={services} height={100}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="Nothing is exposed">A port of the pod gets an address that others can open.</Empty>
          ) : (
            <Table label="Exposed services" rows={data} keyOf={({ service_id }) => service_id} columns={columns(podName, mayUse)} />
          )
        }
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
    ...(mayUse ? [{ title: '', cell: (service: Service) => <ServiceActions service={service} podName={podName} /> }] : []),
  ];
}

function ServiceActions({ service, podName }: { service: Service; podName: string }) {
  if (service.status === 'deleting') return null;
  const { service_id, service_name } = service;
  return (
    <div className="actions">
      <ModalBox title={`Edit ${service_name}`} trigger={<Button isSmall>Edit</Button>}>
        {(close) => <ServiceForm podName={podName} service={service} close={close} />}
      </ModalBox>
      <Ask
        title={`Close ${service_name}`}
        question={<p>Its address no longer answers, and may be given to another service.</p>}
        trigger={
          <Button isSmall kind="danger">
            Delete
          </Button>
        }
        submit="Delete"
        action={() => answerOf(api.DELETE('/api/pods/delete-exposed-service/{id}', { params: { path: { id: service_id } } }))}
        invalidates={['services']}
        done={`${service_name} is being closed.`}
      />
    </div>
  );
}

const protocols = ['HTTP', 'HTTPS', 'TCP', 'UDP'] as const;

function ServiceForm({ podName, service, close }: { podName: string; service?: Service; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState(service?.service_name ?? '');
  const [port, setPort] = useState(String(service?.port ?? ''));
  const [protocol, setProtocol] = useState<Service['protocol']>(service?.protocol ?? 'HTTP');
  const [external, setExternal] = useState(service ? String(service.external_port) : '');
  const [ssl, setSsl] = useState(service?.ssl_enabled ?? false);
  const terms = {
    service_name: name,
    port: Number(port),
    protocol,
    ssl_enabled: ssl,
    ...(external !== '' && { external_port: Number(external) }),
  };
  const save = () =>
    service
      ? answerOf(api.PUT('/api/pods/update-exposed-service', { body: { service_id: service.service_id, ...terms } }))
      : answerOf(api.POST('/api/pods/expose-service', { params: { header }, body: { pod_name: podName, ...terms } }));
  return (
    <ActionForm submit="Save" action={save} invalidates={['services']} done="The service was accepted." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <Field
            label="Name"
            value={name}
            onChange={setName}
            hint="Lower-case letters, digits and hyphens."
            error={problem?.fields.service_name}
            isRequired
          />
          <Field label="Port in the pod" type="number" value={port} onChange={setPort} error={problem?.fields.port} isRequired />
          <Chooser label="Protocol" value={protocol} choices={protocols.map((value) => ({ value, label: value }))} onChange={setProtocol} />
          <Field
            label="External port"
            type="number"
            value={external}
            onChange={setExternal}
            hint="Any that is free unless given."
            error={problem?.fields.external_port}
          />
          <Toggle label="End TLS in front of it" isOn={ssl} onChange={setSsl} />
        </>
      )}
    </ActionForm>
  );
}
