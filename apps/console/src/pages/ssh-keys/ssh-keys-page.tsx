import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, Ask, ModalBox } from '../../parts/dialogs.js';
import { Field, TextArea } from '../../parts/fields.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Pager, Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';

type SshKey = Schemas['SshKey'];

const sshKeysQuery = (page: number) =>
  queryOptions({
    queryKey: ['ssh-keys', page],
    queryFn: () => answerOf(api.GET('/api/user/ssh-key', { params: { query: { page, limit: 20 } } })),
    placeholderData: keepPreviousData,
  });

export function SshKeysPage() {
  const { timezone } = useUser();
  const { page = '1' } = useSearch({ from: '/in/profile/ssh-keys' });
  const navigate = useNavigate({ from: '/profile/ssh-keys' });
  const keys = useQuery(sshKeysQuery(Number(page)));
  return (
    <Page title="SSH keys" lead="They open the pods of the teams in which you may use pods." actions={<AddKey />}>
      <Loaded query={keys} height={200}>
        {({ data, pagination }) =>
          data.length === 0 ? (
            <Empty title="You have no SSH key here">
              Add the public half of one, such as the line in <code>~/.ssh/id_ed25519.pub</code>.
            </Empty>
          ) : (
            <div>
              <Table
                label="SSH keys"
                rows={data}
                keyOf={({ ssh_key_id }) => ssh_key_id}
                columns={[
                  { title: 'Name', isHead: true, cell: ({ name }) => <span className="given">{name}</span> },
                  {
                    title: 'Key',
                    cell: ({ type, fingerprint }) => (
                      <>
                        {type}
                        <br />
                        <code className="hint given">{fingerprint}</code>
                      </>
                    ),
                  },
                  { title: 'Added', cell: ({ created_at }) => instant(created_at, timezone) },
                  { title: '', cell: (key) => <KeyActions sshKey={key} /> },
                ]}
              />
              <Pager {...pagination} first={1} onChange={(next) => void navigate({ search: { page: String(next) } })} />
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

function AddKey() {
  return (
    <ModalBox title="Add an SSH key" trigger={<Button kind="primary">Add a key</Button>}>
      {(close) => <AddKeyForm close={close} />}
    </ModalBox>
  );
}

function AddKeyForm({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [publicKey, setPublicKey] = useState('');
  const body = { public_key: publicKey.trim(), ...(name !== '' && { name }) };
  const add = () => answerOf(api.POST('/api/user/ssh-key', { params: { header }, body }));
  return (
    <ActionForm submit="Add" action={add} invalidates={['ssh-keys']} done="The key was added." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <TextArea
            label="Public key"
            value={publicKey}
            onChange={setPublicKey}
            hint="One line that begins with ssh-ed25519, ecdsa-sha2-… or ssh-rsa. The private key stays with you."
            error={problem?.fields.public_key}
            isRequired
          />
          <Field label="Name" value={name} onChange={setName} hint="The comment of the key if left empty." error={problem?.fields.name} />
        </>
      )}
    </ActionForm>
  );
}

function KeyActions({ sshKey: { ssh_key_id, name } }: { sshKey: SshKey }) {
  return (
    <div className="actions">
      <ModalBox title={`Rename ${name}`} trigger={<Button isSmall>Rename</Button>}>
        {(close) => <RenameForm id={ssh_key_id} name={name} close={close} />}
      </ModalBox>
      <Ask
        title={`Remove ${name}`}
        question={<p>It opens nothing any more, and connections that it has opened end at once.</p>}
        trigger={
          <Button isSmall kind="danger">
            Remove
          </Button>
        }
        submit="Remove"
        action={() => answerOf(api.DELETE('/api/user/ssh-key/{ssh_key_id}', { params: { path: { ssh_key_id } } }))}
        invalidates={['ssh-keys']}
        done={`${name} was removed.`}
      />
    </div>
  );
}

function RenameForm({ id, name: before, close }: { id: string; name: string; close: () => void }) {
  const [name, setName] = useState(before);
  const rename = () => answerOf(api.PUT('/api/user/ssh-key/{ssh_key_id}', { params: { path: { ssh_key_id: id } }, body: { name } }));
  return (
    <ActionForm submit="Save" action={rename} invalidates={['ssh-keys']} done="The key was renamed." onDone={close} onCancel={close}>
      {(problem) => <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />}
    </ActionForm>
  );
}
