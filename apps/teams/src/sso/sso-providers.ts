import { isLine } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { boundedText } from '@atoll/waiting';
import { Injectable, Logger } from '@nestjs/common';
import * as oidc from 'openid-client';
import { TeamsSettings } from '../teams-settings.js';
import { clientAuthentication } from './client-authentication.js';
import { readSsoFile, type SsoProviderSettings } from './sso-file.js';

/** How long a provider's description is believed. */
const rediscoverAfterMs = 10 * 60_000;
/** Of each answer of a provider. */
const maxAnswerBytes = 1024 * 1024;

/** The claims of a provider about a logged-in user. */
export interface SsoClaims {
  subject: string;
  email: string | undefined;
  isEmailVerified: boolean;
  name: string | undefined;
  hasSecondFactor: boolean;
  /** Of the claim that the mapping names. */
  values: string[];
}

export interface SsoSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** The providers of `ATOLL_SSO_FILE`, and how to talk to them (OpenID Connect, code flow with PKCE). */
@Injectable()
export class SsoProviderClients {
  readonly all: readonly SsoProviderSettings[];
  private readonly logger = new Logger('Single sign-on');
  private readonly discovered = new Map<string, { atMs: number; config: oidc.Configuration }>();

  constructor(private readonly settings: TeamsSettings) {
    this.all = settings.ssoFile === undefined ? [] : readSsoFile(settings.ssoFile);
  }

  /** Throws `not_found`. */
  find(id: string): SsoProviderSettings {
    const provider = this.all.find((one) => one.id === id);
    if (!provider) throw new AppError('not_found', 'No such provider.');
    return provider;
  }

  /**
   * The address at the provider to which the browser goes. Throws `unavailable` where the provider does not answer as
   * one.
   */
  async urlFor(provider: SsoProviderSettings, { state, nonce, verifier }: SsoSecrets): Promise<string> {
    const config = await this.configOf(provider);
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.redirectUri(provider),
      scope: provider.scope,
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    return url.href;
  }

  /**
   * Exchanges the code of the answer. Throws `unauthenticated` for an answer that is not good, `unavailable` where the
   * provider fails.
   */
  async claims(
    provider: SsoProviderSettings,
    answer: Record<string, string>,
    { state, nonce, verifier }: SsoSecrets,
  ): Promise<SsoClaims> {
    const config = await this.configOf(provider);
    const url = new URL(this.redirectUri(provider));
    for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value);
    try {
      const tokens = await oidc.authorizationCodeGrant(config, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new Error('no ID token');
      const further = isWhole(claims, provider) ? {} : await userInfo(config, tokens.access_token, claims.sub);
      return readClaims({ ...further, ...claims }, provider.mapping.claim);
    } catch (error) {
      // What it says of itself may have changed: its keys, its addresses.
      this.discovered.delete(provider.id);
      this.logger.warn(`The response of ${provider.id} is not valid: ${describe(error)}`);
      if (isOutage(error)) throw away(provider, error);
      throw new AppError(
        'unauthenticated',
        `${provider.name} sent an invalid response. Log in again.`,
        {},
        { cause: error },
      );
    }
  }

  private async configOf(provider: SsoProviderSettings): Promise<oidc.Configuration> {
    const known = this.discovered.get(provider.id);
    if (known && Date.now() - known.atMs < rediscoverAfterMs) return known.config;
    try {
      const execute = [
        oidc.enableNonRepudiationChecks,
        ...(provider.issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []),
      ];
      const options = { execute, timeout: this.settings.ssoPatienceMs / 1000, [oidc.customFetch]: boundedFetch };
      const config = await oidc.discovery(
        new URL(provider.issuer),
        provider.client_id,
        provider.client_secret,
        clientAuthentication(provider.client_secret),
        options,
      );
      this.discovered.set(provider.id, { atMs: Date.now(), config });
      return config;
    } catch (error) {
      this.logger.warn(`${provider.id} cannot be discovered: ${describe(error)}`);
      throw away(provider, error);
    }
  }

  private redirectUri({ id }: SsoProviderSettings): string {
    return `${this.settings.publicUrl}/api/user/sso/${id}/callback`;
  }
}

const boundedFetch: oidc.CustomFetch = async (url, options) => {
  const { body, status, headers } = await fetch(url, options);
  return new Response((await boundedText(body, maxAnswerBytes)) || null, { status, headers });
};

/** Whether the ID token has all required claims: the identity of the user, and the claim of the mapping. */
function isWhole(claims: oidc.IDToken, { mapping }: SsoProviderSettings): boolean {
  return claims['email'] !== undefined && (mapping.grants.length === 0 || claims[mapping.claim] !== undefined);
}

/**
 * OpenID Connect Core, 5.4: with an access token, the claims of the scopes may be missing from the ID token, and are
 * fetched with it.
 */
async function userInfo(
  config: oidc.Configuration,
  accessToken: string,
  subject: string,
): Promise<Record<string, unknown>> {
  if (config.serverMetadata().userinfo_endpoint === undefined) return {};
  return { ...(await oidc.fetchUserInfo(config, accessToken, subject)) };
}

function readClaims(claims: Record<string, unknown>, mapped: string): SsoClaims {
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  const { sub: subject, amr, name } = claims;
  // OpenID Connect Core, 2.
  if (!isLine(subject, 255)) throw new TypeError('The subject is not a line of at most 255 characters.');
  const shown = typeof name === 'string' ? [...name].slice(0, 100).join('').trim() : undefined;
  const values = [claims[mapped] ?? []].flat().filter((value) => typeof value === 'string');
  return {
    subject,
    email: text(claims['email']),
    isEmailVerified: claims['email_verified'] === true,
    name: isLine(shown, 100) ? shown : undefined,
    hasSecondFactor: Array.isArray(amr) && amr.includes('mfa'),
    values,
  };
}

/** Of openid-client: the provider did not answer in time, or what it answered is nothing that a provider answers. */
const outageCodes: ReadonlySet<string | undefined> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_PARSE_ERROR',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
]);

/**
 * The provider did not answer, answered nonsense, or said that it has a fault; not: it refused, or its answer is for
 * somebody else.
 */
function isOutage(error: unknown): boolean {
  if (error instanceof oidc.ResponseBodyError) return error.status >= 500;
  if (error instanceof oidc.ClientError) return outageCodes.has(error.code) || isBrokenOff(error.cause);
  return isBrokenOff(error) || (error instanceof Error && error.name === 'TimeoutError');
}

/** Of `fetch`: the connection failed; of `boundedText`: the answer was too long. */
function isBrokenOff(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function away({ name }: SsoProviderSettings, cause: unknown): AppError {
  return new AppError(
    'unavailable',
    `${name} cannot be reached at the moment. Try again, or log in another way.`,
    { retryAfterSeconds: 5 },
    { cause },
  );
}
