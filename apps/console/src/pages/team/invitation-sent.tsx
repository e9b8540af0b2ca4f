import type { Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Secret } from '../../parts/secret.js';

/** The link, where there is no mail to send it by. */
export function InvitationSent({ invitation: { url }, close }: { invitation: Schemas['SentInvitation']; close: () => void }) {
  return (
    <>
      {url === null ? <p>The link is on its way by mail.</p> : <Secret label="The link of the invitation" value={url} />}
      <div className="dialog-actions">
        <Button kind="primary" onPress={close}>
          Done
        </Button>
      </div>
    </>
  );
}
