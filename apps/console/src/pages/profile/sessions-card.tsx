import { queryOptions, useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Act } from '../../parts/dialogs.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Listing } from '../../parts/listing.js';
import { Card, ListRow } from '../../parts/page.js';
import { PasswordField } from '../../parts/password-field.js';
import { Loaded } from '../../parts/states.js';
import { useUser } from '../../api/user-context.js';

const sessionsQuery = queryOptions({ queryKey: ['sessions'], queryFn: () => answerOf(api.GET('/api/user/sessions')) });

/** Where this user is logged in. A key to one team may not see it. */
export function SessionsCard() {
  const { timezone } = useUser();
  const sessions = useQuery(sessionsQuery);
  return (
    <Card title="Sessions and password" actions={<ChangePassword />}>
      <Loaded query={sessions} height={100}>
        {({ data }) => (
          <Listing
            label="Sessions"
            rows={data}
            keyOf={({ id }) => id}
            empty={<p className="hint">You are logged in with an API key, not with a password.</p>}
          >
            {({ rows }) => (
              <ul className="list">
                {rows.map(({ id, device, address, last_used_at, current }) => (
                  <ListRow
                    key={id}
                    head={
                      <>
                        {device || 'Unknown device'}
                        <br />
                        <span className="hint">
                          {address}, last used {instant(last_used_at, timezone)}
                          {current && ' (this one)'}
                        </span>
                      </>
                    }
                  >
                    {!current && (
                      <Act
                        label="End"
                        action={() => answerOf(api.DELETE('/api/user/sessions/{id}', { params: { path: { id } } }))}
                        invalidates={['sessions']}
                        done="The session was ended."
                      />
                    )}
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

function ChangePassword() {
  return (
    <FormDialog
      title="Change your password"
      trigger={<Button>Change the password</Button>}
      initial={{ current: '', new: '' }}
      submit="Change"
      action={(body) => answerOf(api.PUT('/api/user/password', { body }))}
      invalidates={['sessions']}
      done="The password was changed; your other sessions ended."
    >
      {({ field }) => (
        <>
          <PasswordField label="Current password" kind="current" {...field('current')} />
          <PasswordField label="New password" kind="new" {...field('new')} />
        </>
      )}
    </FormDialog>
  );
}
