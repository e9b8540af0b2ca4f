import { answerOf, api } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Found, FormDialog } from '../../parts/form-dialog.js';
import { Secret } from '../../parts/secret.js';

/** Asked for by a press, shown in the dialog, and gone when it closes: in no query and no cache. */
export function Credentials({ instanceId, name }: { instanceId: string; name: string }) {
  return (
    <FormDialog
      title={`Log in to ${name}`}
      trigger={<Button isSmall>Credentials</Button>}
      initial={{}}
      submit="Show"
      action={() =>
        answerOf(api.GET('/api/baremetal/{instance_id}/credentials', { params: { path: { instance_id: instanceId } } }))
      }
      invalidates={[]}
      shown={({ host, port, username, ssh_password }) => (
        <Found>
          <p>
            <code className="given">
              ssh -p {port} {username}@{host}
            </code>
          </p>
          <Secret label="The password" value={ssh_password} />
        </Found>
      )}
    >
      {() => <p>Anyone who sees the password can log in to the host.</p>}
    </FormDialog>
  );
}
