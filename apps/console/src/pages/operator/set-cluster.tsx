import { useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, TextArea } from '../../parts/fields.js';

type Cluster = Schemas['Cluster'];

const drivers: { value: 'simulated' | 'docker'; label: string; detail: string }[] = [
  { value: 'simulated', label: 'Simulated', detail: 'Runs nothing; for trying the platform.' },
  { value: 'docker', label: 'Docker', detail: 'A container engine, by its socket or its address.' },
];

export function SetCluster({ cluster, name }: { cluster: Cluster; name: string }) {
  return (
    <ModalBox title={`Cluster of ${name}`} trigger={<Button isSmall>Change</Button>}>
      {(close) => <ClusterForm cluster={cluster} close={close} />}
    </ModalBox>
  );
}

function ClusterForm({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const [driver, setDriver] = useState<'simulated' | 'docker'>(cluster.driver === 'docker' ? 'docker' : 'simulated');
  const [host, setHost] = useState(cluster.public_host);
  const [engine, setEngine] = useState(cluster.url ?? cluster.socket ?? '');
  const [ca, setCa] = useState('');
  const [cert, setCert] = useState('');
  const [key, setKey] = useState('');
  const isRemote = driver === 'docker' && engine.startsWith('https:');
  const reached = isRemote ? { url: engine, ca, cert, key } : engine === '' ? {} : { socket: engine };
  const body = { driver, public_host: host, ...(driver === 'docker' && reached) };
  const set = () => answerOf(api.PUT('/api/gpuaas/{gpuaas_id}/cluster', { params: { path: { gpuaas_id: cluster.gpuaas_id } }, body }));
  return (
    <ActionForm submit="Set" action={set} invalidates={['clusters']} done="The cluster was set." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <Chooser label="Driver" value={driver} choices={drivers} onChange={setDriver} />
          <Field
            label="Public host"
            value={host}
            onChange={setHost}
            hint="Where exposed services are reached."
            error={problem?.fields.public_host}
            isRequired
          />
          {driver === 'docker' && (
            <Field
              label="Engine"
              value={engine}
              onChange={setEngine}
              hint="Path of a socket that ATOLL_DOCKER_SOCKETS names, or an https address."
              error={problem?.fields.socket ?? problem?.fields.url}
              isRequired
            />
          )}
          {isRemote && (
            <>
              <TextArea label="Certificate of its authority" value={ca} onChange={setCa} error={problem?.fields.ca} />
              <TextArea label="Certificate of the client" value={cert} onChange={setCert} error={problem?.fields.cert} />
              <TextArea
                label="Key of the client"
                value={key}
                onChange={setKey}
                hint="It is never shown again."
                error={problem?.fields.key}
              />
            </>
          )}
        </>
      )}
    </ActionForm>
  );
}
