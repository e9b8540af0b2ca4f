import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, Text } from '../fields.js';
import { Names, Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import { OpenedSession, SessionOrigin } from './session.js';

/** Input of an authenticator app: the secret, also as the URI of a QR code. */
export class NewSecondFactor {
  @Text({
    max: 128,
    description: 'Secret of the authenticator, base32 (RFC 4648). Shown once.',
    example: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  })
  secret!: string;

  @Text({
    max: 1024,
    description: 'The same as a key URI, for a QR code.',
    example: 'otpauth://totp/Atoll:ada%40example.com?secret=…',
  })
  uri!: string;
}

export class SecondFactorCode {
  @Text({ max: 32, description: 'Six digits of the authenticator, or a recovery code.', example: '123456' })
  code!: string;
}

export class RecoveryCodes {
  @Names({ max: 10, description: 'Codes that each stand in for the authenticator once. Shown once.' })
  recovery_codes!: string[];
}

export class SecondStep extends SecondFactorCode {
  @Text({ max: 256, description: 'The ticket of the refusal `second_factor_required`.' })
  ticket!: string;
}

export class SecondStepFrom extends IntersectionType(SecondStep, SessionOrigin) {}

export const secondFactors = contract('teams.second_factors', {
  logIn: operation(SecondStepFrom, OpenedSession),
  begin: operation(Nothing, NewSecondFactor),
  confirm: operation(SecondFactorCode, RecoveryCodes),
  remove: operation(SecondFactorCode, Nothing),
});

/** What a browser hands to an authenticator. */
export class PasskeyOptions {
  @Uuid({ description: 'Id of the challenge, which can be used once within 5 minutes.' })
  challenge_id!: string;

  @Text({
    max: 16_384,
    description:
      'JSON for `PublicKeyCredential.parseCreationOptionsFromJSON`, at log-in for `parseRequestOptionsFromJSON` (WebAuthn Level 3).',
  })
  options!: string;
}

export class PasskeyAnswer {
  @Uuid({ description: 'Id of the challenge, which can be used once within 5 minutes.' })
  challenge_id!: string;

  @Text({ max: 32_768, description: 'JSON of `PublicKeyCredential.toJSON()`.' })
  credential!: string;
}

export class PasskeyAnswerFrom extends IntersectionType(PasskeyAnswer, SessionOrigin) {}

const passkeyName = { max: 100, example: 'Laptop' };

export class BeginPasskey {
  @Text({
    ...passkeyName,
    optional: true,
    description: 'Name that will be sent with the credential; checked before the device creates the passkey.',
  })
  name?: string;
}

export class NewPasskey extends PasskeyAnswer {
  @Text({ ...passkeyName, description: 'Name by which the user tells it from others.' })
  name!: string;
}

export class PasskeyPath {
  @Uuid()
  id!: string;
}

export class Passkey {
  @Uuid()
  id!: string;

  @Text(passkeyName)
  name!: string;

  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'Instant of the last log-in by it; null before the first.' })
  last_used_at!: string | null;
}

export class PasskeyList {
  @ListOf(() => Passkey, { max: 100 })
  data!: Passkey[];
}

export const passkeys = contract('teams.passkeys', {
  list: operation(Nothing, PasskeyList),
  begin: operation(BeginPasskey, PasskeyOptions),
  finish: operation(NewPasskey, Passkey),
  remove: operation(PasskeyPath, Nothing),
  beginLogIn: operation(Nothing, PasskeyOptions),
  logIn: operation(PasskeyAnswerFrom, OpenedSession),
});
