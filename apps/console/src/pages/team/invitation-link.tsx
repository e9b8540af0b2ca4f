import type { Schemas } from '../../api/client.js';
import { Secret } from '../../parts/secret.js';

/** The link, where there is no mail to send it by. */
export function InvitationLink({ invitation: { url } }: { invitation: Schemas['SentInvitation'] }) {
  if (url === null) return <p>The link is on its way by mail.</p>;
  return <Secret label="The link of the invitation" value={url} />;
}
