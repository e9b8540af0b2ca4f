import { useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Secret } from '../../parts/secret.js';

/** Asked for by a press, shown in the dialog, and gone when it closes: in no query and no cache. */
export function Credentials({ instanceId, name }: { instanceId: string; name: string }) {
  return (
    <ModalBox title={`Log in to ${name}`} trigger={<Button isSmall>Credentials</Button>}>
      {(close) => <CredentialsBox instanceId={instanceId} close={close} />}
    </ModalBox>
  );
}

function CredentialsBox({ instanceId, close }: { instanceId: string; close: () => void }) {
  const [shown, setShown] = useState<Schemas['BaremetalCredentials'] | null>(null);
  const read = () => answerOf(api.GET('/api/baremetal/{instance_id}/credentials', { params: { path: { instance_id: instanceId } } }));
  if (!shown) {
    return (
      <ActionForm submit="Show" action={read} invalidates={[]} onDone={setShown} onCancel={close}>
        {() => <p>Whoever sees the password can log in to the host.</p>}
      </ActionForm>
    );
  }
  const { host, port, username, ssh_password } = shown;
  return (
    <>
      <p>
        <code className="given">
          ssh -p {port} {username}@{host}
        </code>
      </p>
      <Secret label="The password" value={ssh_password} />
      <div className="dialog-actions">
        <Button kind="primary" onPress={close}>
          Done
        </Button>
      </div>
    </>
  );
}
