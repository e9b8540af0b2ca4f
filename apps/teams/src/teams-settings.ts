import { isWellFormedApiKey } from '@atoll/api-keys';
import { Email, Text, WholeNumber } from '@atoll/contracts';
import { deletionHolders } from '@atoll/contracts/teams';
import { defaultPublicUrl, KeyPepper, ParsedBy, PublicUrl, SealKeys, Variable } from '@atoll/service';
import { IsIn, IsOptional, Matches } from 'class-validator';

/** One address, with a name before it or without (RFC 5322, 3.4); what is not plain in a name stands in quotes. */
const mailboxForm = /^(?=.{3,254}$)(?:[^\s<>@,;"]+@[^\s<>@,;"]+|(?:"[^"]*"|[^<>@,;"]*)\s*<[^\s<>@,;"]+@[^\s<>@,;"]+>)$/;

function requireApiKey(text: string): void {
  if (isWellFormedApiKey(text)) return;
  throw new Error(
    'ATOLL_ADMIN_KEY must be a key that "npm run admin-key -- --print" makes: atl_ and 38 letters or digits, of which the last six are a checksum.',
  );
}

/** An @ behind the host means that the password has an unescaped special character, and the host is a part of it. */
function requireSmtpUrl(text: string): void {
  const url = /^smtps?:\/\/[^\s#]+$/.test(text) ? URL.parse(text) : null;
  if (url && url.hostname !== '' && !(url.pathname + url.search).includes('@')) return;
  throw new Error(
    'SMTP_URL must be a URL such as smtp://user:password@mail.example.com:587; percent-encode special characters in its password.',
  );
}

/** What a deployment decides about the teams service. */
export class TeamsSettings {
  @KeyPepper()
  keyPepper: string = '';

  /** The operator's account, made at the first start. */
  @Variable('ATOLL_ADMIN_EMAIL')
  @Email()
  adminEmail: string = 'admin@atoll.local';

  /** The operator's key; one is made and printed once where it is left out. */
  @Variable('ATOLL_ADMIN_KEY')
  @IsOptional()
  @ParsedBy(requireApiKey)
  adminKey: string | undefined = undefined;

  /** For the keys that sign access tokens, and second factors. */
  @SealKeys()
  sealKeys: string = '';

  @PublicUrl()
  publicUrl: string = defaultPublicUrl;

  /** A session that is not used for so long ends. */
  @Variable('ATOLL_SESSION_IDLE_HOURS')
  @WholeNumber({ min: 1, max: 720, unit: 'hours' })
  sessionIdleHours: number = 12;

  /** A session ends after so long, however much it is used. */
  @Variable('ATOLL_SESSION_DAYS')
  @WholeNumber({ min: 1, max: 365, unit: 'days' })
  sessionDays: number = 30;

  /**
   * The mail server, `smtp://user:password@host:587` or `smtps://`. Without one, links are shown to whoever makes them.
   */
  @Variable('SMTP_URL')
  @IsOptional()
  @ParsedBy(requireSmtpUrl)
  smtpUrl: string | undefined = undefined;

  /**
   * Mails that each replica sends at once, over a connection each, of which some servers allow a mailbox three; of
   * invitations half as many, rounded up.
   */
  @Variable('ATOLL_MAILS_AT_ONCE')
  @WholeNumber({ min: 1, max: 32, unit: 'mails' })
  mailsAtOnce: number = 3;

  /** Whom mail comes from, `Atoll <atoll@example.com>`; `no-reply` at the host of ATOLL_PUBLIC_URL unless given. */
  @Variable('ATOLL_MAIL_FROM')
  @IsOptional()
  @Matches(mailboxForm, {
    message: 'ATOLL_MAIL_FROM must be an address such as atoll@example.com, or Atoll <atoll@example.com>',
  })
  mailFrom: string | undefined = undefined;

  /** `required`: a session of the operator without a second factor may do nothing of the operator's. */
  @Variable('ATOLL_OPERATOR_SECOND_FACTOR')
  @IsIn(['required', 'optional'], { message: 'ATOLL_OPERATOR_SECOND_FACTOR must be required or optional' })
  operatorSecondFactor: 'required' | 'optional' = 'optional';

  /** A JSON file with the providers of single sign-on: see docs/sessions.md. */
  @Variable('ATOLL_SSO_FILE')
  @Text({ max: 4096, optional: true })
  ssoFile: string | undefined = undefined;

  /** Failed log-ins to one account, from networks that are new to it and from each that it knows: `count/seconds`. */
  @Variable('ATOLL_LOG_IN_TRIES')
  @Matches(/^[1-9]\d{0,5}\/[1-9]\d{0,5}$/, { message: 'ATOLL_LOG_IN_TRIES must be count/seconds, such as 10/600' })
  logInTries: string = '10/600';

  /** The services that can hold something of a team, and so have a say in its deletion. */
  deletionHolders: readonly string[] = deletionHolders;

  /** How long a deletion waits for the answers of the services that may hold something. */
  deletionPatienceMs: number = 3_000;

  /** How long the answer to a forced deletion waits for its end; then it says what is left. */
  forcedDeletionPatienceMs: number = 8_000;

  /** How long each question to a provider of single sign-on may take. */
  ssoPatienceMs: number = 5_000;

  /** How long the mail server may take for one mail in all. The mail is due again a minute after it was claimed. */
  mailPatienceMs: number = 45_000;

  /** How often deletions that are under way are looked at. */
  upkeepMs: number = 1_000;
}
