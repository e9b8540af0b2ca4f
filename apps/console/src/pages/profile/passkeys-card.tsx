import { queryOptions, useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { problemOf } from '../../api/problem.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Field } from '../../parts/fields.js';
import { Ask, FormDialog } from '../../parts/form-dialog.js';
import { Listing } from '../../parts/listing.js';
import { Card, ListRow } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { addPasskey } from '../../session/session.js';
import { useUser } from '../../api/user-context.js';

const passkeysQuery = queryOptions({ queryKey: ['passkeys'], queryFn: () => answerOf(api.GET('/api/user/passkeys')) });

export function PasskeysCard() {
  const { timezone } = useUser();
  const passkeys = useQuery(passkeysQuery);
  return (
    <Card title="Passkeys" actions={<AddPasskey />}>
      <Loaded query={passkeys} height={60}>
        {({ data }) => (
          <Listing
            label="Passkeys"
            rows={data}
            keyOf={({ id }) => id}
            empty={<p className="hint">A passkey of your device or security key replaces password and code.</p>}
          >
            {({ rows }) => (
              <ul className="list">
                {rows.map(({ id, name, created_at, last_used_at }) => (
                  <ListRow
                    key={id}
                    head={
                      <>
                        {name}
                        <br />
                        <span className="hint">
                          added {instant(created_at, timezone)},{' '}
                          {last_used_at ? `last used ${instant(last_used_at, timezone)}` : 'never used'}
                        </span>
                      </>
                    }
                  >
                    <Ask
                      title={`Remove ${name}`}
                      question={<p>You can no longer log in with it.</p>}
                      submit="Remove"
                      action={() => answerOf(api.DELETE('/api/user/passkeys/{id}', { params: { path: { id } } }))}
                      invalidates={['passkeys', 'profile']}
                      done="The passkey was removed."
                    />
                  </ListRow>
                ))}
              </ul>
            )}
          </Listing>
        )}
      </Loaded>
    </Card>
  );
}

function AddPasskey() {
  return (
    <FormDialog
      title="Add a passkey"
      trigger={<Button>Add a passkey</Button>}
      initial={{ name: '' }}
      submit="Add"
      action={async ({ name }) => {
        const response = await addPasskey(name);
        if (!response.ok) throw problemOf(response, await response.json());
      }}
      invalidates={['passkeys', 'profile']}
      done="The passkey was added."
    >
      {({ field }) => (
        <Field
          label="Name"
          {...field('name')}
          hint="To tell it from others, for example Laptop. Your browser asks for the rest."
          isRequired
        />
      )}
    </FormDialog>
  );
}
