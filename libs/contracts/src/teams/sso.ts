import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, ListOf, Text, WholeNumber } from '../fields.js';
import { Nothing } from '../page.js';
import { OpenedSession, SessionOrigin } from './session.js';

export class SsoProviderPath {
  @Text({ max: 32, pattern: /^[a-z0-9-]+$/, patternHint: 'lower-case letters, digits and hyphens', example: 'corp' })
  provider!: string;
}

export class SsoProvider {
  @Text({ max: 32, example: 'corp' })
  id!: string;

  @Text({ max: 100, example: 'Example Corporation' })
  name!: string;
}

export class SsoProviders {
  @Flag({
    description:
      'Whether the platform sends mail, by which a lost password is replaced. Otherwise the operator makes a link for it.',
  })
  sends_mail!: boolean;

  @ListOf(() => SsoProvider, { max: 50 })
  data!: SsoProvider[];
}

/** Where the browser goes, and what it keeps meanwhile. */
export class SsoFlow {
  @Text({ max: 8192 })
  url!: string;

  @Text({ max: 256 })
  flow_token!: string;

  @WholeNumber({ min: 0, max: 3600 })
  expires_in!: number;
}

const parameter = { max: 4096, optional: true };

/**
 * What providers send back, as far as it is known: RFC 6749, RFC 9207, OpenID Connect, and what some add. The gateway
 * leaves out the rest.
 */
export class SsoCallback {
  @Text(parameter)
  code?: string;

  @Text(parameter)
  state?: string;

  @Text(parameter)
  error?: string;

  @Text({ ...parameter, min: 0 })
  error_description?: string;

  @Text({ ...parameter, min: 0 })
  error_uri?: string;

  @Text(parameter)
  iss?: string;

  @Text({ ...parameter, min: 0 })
  session_state?: string;

  @Text({ ...parameter, min: 0 })
  scope?: string;

  @Text({ ...parameter, min: 0 })
  authuser?: string;

  @Text({ ...parameter, min: 0 })
  hd?: string;

  @Text({ ...parameter, min: 0 })
  prompt?: string;
}

class SsoFlowToken {
  @Text({ min: 0, max: 256 })
  flow_token!: string;
}

export class SsoAnswer extends IntersectionType(
  IntersectionType(SsoProviderPath, SsoFlowToken),
  IntersectionType(SsoCallback, SessionOrigin),
) {}

export const singleSignOn = contract('teams.sso', {
  list: operation(Nothing, SsoProviders),
  begin: operation(SsoProviderPath, SsoFlow),
  finish: operation(SsoAnswer, OpenedSession),
});
