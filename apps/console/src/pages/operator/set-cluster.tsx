import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Chooser, Field, TextArea } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';

type Cluster = Schemas['Cluster'];

type Driver = 'simulated' | 'docker';

const drivers: { value: Driver; label: string; detail: string }[] = [
  { value: 'simulated', label: 'Simulated', detail: 'Runs nothing; for trying the platform.' },
  { value: 'docker', label: 'Docker', detail: 'A container engine, by its socket or its address.' },
];

export function SetCluster({ cluster, name }: { cluster: Cluster; name: string }) {
  const driver: Driver = cluster.driver === 'docker' ? 'docker' : 'simulated';
  const initial = {
    driver,
    host: cluster.public_host,
    engine: cluster.url ?? cluster.socket ?? '',
    ...{ ca: '', cert: '', key: '' },
  };
  const isRemote = ({ driver, engine }: typeof initial) => driver === 'docker' && engine.startsWith('https:');
  return (
    <FormDialog
      title={`Cluster of ${name}`}
      trigger={<Button isSmall>Change</Button>}
      initial={initial}
      submit="Set"
      action={(values) => {
        const { driver, host, engine, ca, cert, key } = values;
        const reached = isRemote(values) ? { url: engine, ca, cert, key } : engine === '' ? {} : { socket: engine };
        const body = { driver, public_host: host, ...(driver === 'docker' && reached) };
        return answerOf(
          api.PUT('/api/gpuaas/{gpuaas_id}/cluster', { params: { path: { gpuaas_id: cluster.gpuaas_id } }, body }),
        );
      }}
      invalidates={['clusters']}
      done="The cluster was set."
    >
      {({ values, field, problem }) => (
        <>
          <Chooser label="Driver" {...field('driver')} choices={drivers} />
          <Field
            label="Public host"
            {...field('host', 'public_host')}
            hint="Where exposed services are reached. With docker not the host of this console."
            isRequired
          />
          {values.driver === 'docker' && (
            <Field
              label="Engine"
              {...field('engine')}
              hint="Path of a socket listed in ATOLL_DOCKER_SOCKETS, or an https address."
              error={problem?.fields.socket ?? problem?.fields.url}
              isRequired
            />
          )}
          {isRemote(values) && (
            <>
              <TextArea label="Certificate of its authority" {...field('ca')} />
              <TextArea label="Certificate of the client" {...field('cert')} />
              <TextArea label="Key of the client" {...field('key')} hint="It is never shown again." />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
