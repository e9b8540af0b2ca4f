import { queryOptions, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Field, TextArea } from '../../parts/fields.js';
import { Ask, FormDialog } from '../../parts/form-dialog.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';

type SshKey = Schemas['SshKey'];

const sshKeysQuery = (page: number) =>
  queryOptions({
    queryKey: ['ssh-keys', page],
    queryFn: () => answerOf(api.GET('/api/user/ssh-key', { params: { query: { page, limit: 20 } } })),
  });

export function SshKeysPage() {
  const { timezone } = useUser();
  const { page = '1' } = useSearch({ from: '/in/profile/ssh-keys' });
  const navigate = useNavigate({ from: '/profile/ssh-keys' });
  const keys = useQuery(sshKeysQuery(Number(page)));
  return (
    <Page
      title="SSH keys"
      lead="They give access to the pods, VMs and hosts of all teams in which you may use them. A key that was added without a second factor opens nothing in a team that required one when you joined it: remove it, and add it again in a session with one."
      actions={<AddKey />}
    >
      <Paged
        label="SSH keys"
        query={keys}
        page={page}
        first={1}
        height={200}
        onTurn={(next) => void navigate({ search: { page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="SSH keys"
            rows={data}
            keyOf={({ ssh_key_id }) => ssh_key_id}
            empty={
              pagination.total === 0 && (
                <Empty title="You have no SSH key here">
                  Add the public half of one, such as the line in <code>~/.ssh/id_ed25519.pub</code>.
                </Empty>
              )
            }
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
              {
                title: 'Added',
                isWhole: true,
                cell: ({ created_at, lacks_second_factor }) => (
                  <>
                    {instant(created_at, timezone)}
                    {lacks_second_factor && (
                      <>
                        <br />
                        <span className="hint">without a second factor</span>
                      </>
                    )}
                  </>
                ),
              },
              { title: '', cell: (key) => <KeyActions sshKey={key} /> },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}

function AddKey() {
  return (
    <FormDialog
      title="Add an SSH key"
      trigger={<Button kind="primary">Add a key</Button>}
      initial={{ publicKey: '', name: '' }}
      keptAs="new SSH key"
      submit="Add"
      action={({ publicKey, name }, header) =>
        answerOf(
          api.POST('/api/user/ssh-key', {
            params: { header },
            body: { public_key: publicKey.trim(), ...(name !== '' && { name }) },
          }),
        )
      }
      invalidates={['ssh-keys']}
      done="The key was added."
    >
      {({ field }) => (
        <>
          <TextArea
            label="Public key"
            {...field('publicKey', 'public_key')}
            hint="One line that begins with ssh-ed25519, ecdsa-sha2-… or ssh-rsa. The private key stays with you."
            isRequired
          />
          <Field label="Name" {...field('name')} hint="The comment of the key if left empty." />
        </>
      )}
    </FormDialog>
  );
}

function KeyActions({ sshKey: { ssh_key_id, name } }: { sshKey: SshKey }) {
  const params = { path: { ssh_key_id } };
  return (
    <div className="actions">
      <FormDialog
        title={`Rename ${name}`}
        trigger={<Button isSmall>Rename</Button>}
        initial={{ name }}
        submit="Save"
        action={(body) => answerOf(api.PUT('/api/user/ssh-key/{ssh_key_id}', { params, body }))}
        invalidates={['ssh-keys']}
        done="The key was renamed."
      >
        {({ field }) => <Field label="Name" {...field('name')} isRequired />}
      </FormDialog>
      <Ask
        title={`Remove ${name}`}
        question={<p>It no longer opens anything, and its open connections end at once.</p>}
        submit="Remove"
        action={() => answerOf(api.DELETE('/api/user/ssh-key/{ssh_key_id}', { params }))}
        invalidates={['ssh-keys']}
        done={`${name} was removed.`}
      />
    </div>
  );
}
