import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.js';
import { Secret } from '../../parts/secret.js';
import { Loaded } from '../../parts/states.js';
import { waysQuery } from '../login/ways-query.js';

/** The link, where there is no mail to send it by. */
export function InvitationLink({ invitation: { url } }: { invitation: Schemas['SentInvitation'] }) {
  const ways = useQuery({ ...waysQuery, enabled: url === null });
  const link = (
    <Secret
      label="The link of the invitation"
      value={url}
      another="Resend the invitation, in Members and keys, to get another."
    />
  );
  if (url !== null) return link;
  return (
    <Loaded query={ways} height={40}>
      {({ sends_mail: sendsMail }) => (sendsMail ? <p>The link is on its way by mail.</p> : link)}
    </Loaded>
  );
}
