import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type { Configuration } from 'oidc-provider';

export interface OidcPerson {
  /** Also what they enter as their login. */
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
  groups?: string[];
}

/** What comes in place of the provider's answer; `hang`: nothing. */
export type OidcTrouble = 'hang' | { readonly status: number; readonly body: string };

/** How a client may send its secret to the token endpoint. */
export type OidcSecretMethod = 'client_secret_basic' | 'client_secret_post';

/**
 * A provider of OpenID Connect on loopback, with the client `atoll` and the people that a spec wants it to know. It can
 * go wrong in several ways.
 */
export class OidcProvider {
  readonly people = new Map<string, OidcPerson>();
  /** Decides by the path of a request whether the provider answers it. */
  misbehave: (path: string) => OidcTrouble | undefined = () => undefined;
  private listener: ((request: never, response: never) => unknown) | undefined;

  private constructor(
    private readonly server: Server,
    readonly issuer: string,
    private readonly redirectUri: string,
    private readonly hasThinIdTokens: boolean,
    private readonly secretMethods: OidcSecretMethod[],
  ) {}

  /**
   * `host`: a name of loopback. `hasThinIdTokens`: what the scopes stand for is told at the UserInfo endpoint alone, as
   * the standard has it. `secretMethods`: it refuses a client secret that is sent otherwise.
   */
  static async start(
    redirectUri: string,
    {
      host = 'localhost',
      hasThinIdTokens = false,
      secretMethods = ['client_secret_basic', 'client_secret_post'],
    }: { host?: string; hasThinIdTokens?: boolean; secretMethods?: OidcSecretMethod[] } = {},
  ): Promise<OidcProvider> {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
    const provider = new OidcProvider(server, issuer, redirectUri, hasThinIdTokens, secretMethods);
    await provider.rotate();
    server.on('request', (request, response) => {
      const path = new URL(request.url ?? '/', issuer).pathname;
      const trouble = provider.misbehave(path) ?? provider.refuse(path, request);
      if (trouble) suffer(trouble, response);
      else void provider.listener?.(request as never, response as never);
    });
    return provider;
  }

  /** Restarts with another key, like a provider that rotates its keys. All sessions are lost. */
  async rotate(): Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'ES256' };
    const [method] = this.secretMethods;
    const configuration: Configuration = {
      clients: [
        {
          client_id: 'atoll',
          client_secret: 'a secret of the specs',
          redirect_uris: [this.redirectUri],
          id_token_signed_response_alg: 'ES256',
          ...(method && { token_endpoint_auth_method: method }),
        },
      ],
      clientAuthMethods: this.secretMethods,
      jwks: { keys: [key] },
      cookies: { keys: ['a key of the specs'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
      scopes: ['openid', 'email', 'profile', 'groups'],
      conformIdTokenClaims: this.hasThinIdTokens,
      pkce: { required: () => true },
      findAccount: (_context, sub) => {
        const person = this.people.get(sub);
        return person && { accountId: sub, claims: () => ({ ...person }) };
      },
    };
    // Late: no other spec pays for what it loads.
    const { default: Provider } = await import('oidc-provider');
    this.listener = new Provider(this.issuer, configuration).callback();
  }

  /**
   * What a browser does that is led to the provider: logs in, consents, and gives back the address it is led to at
   * last.
   */
  async visit(url: string, login: string): Promise<URL> {
    const jar = new Map<string, string>();
    let next: { url: string; body?: URLSearchParams } = { url };
    for (let step = 0; step < 12; step++) {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(next.url, {
        redirect: 'manual',
        headers: { cookie },
        ...(next.body && { method: 'POST', body: next.body }),
      });
      for (const set of response.headers.getSetCookie()) {
        const [name = '', value = ''] = (set.split(';')[0] ?? '').split(/=(.*)/s);
        jar.set(name, value);
      }
      const location = response.headers.get('location');
      if (location) {
        const target = new URL(location, next.url);
        if (target.origin !== this.issuer) return target;
        next = { url: target.href };
        continue;
      }
      const html = await response.text();
      const prompt = /name="prompt" value="(\w+)"/.exec(html)?.[1];
      const action = /action="([^"]+)"/.exec(html)?.[1];
      if (!prompt || !action)
        throw new Error(`The provider shows something else (${response.status}): ${html.slice(0, 500)}`);
      next = { url: new URL(action, next.url).href, body: new URLSearchParams({ prompt, login, password: 'x' }) };
    }
    throw new Error('The provider leads nowhere.');
  }

  /** The library takes a secret by HTTP Basic also of a client that is registered for the body. */
  private refuse(path: string, { headers }: IncomingMessage): OidcTrouble | undefined {
    if (path !== '/token' || headers.authorization === undefined) return undefined;
    if (this.secretMethods.includes('client_secret_basic')) return undefined;
    return { status: 401, body: '{"error":"invalid_client"}' };
  }

  stop(): Promise<unknown> {
    this.server.closeAllConnections();
    return once(this.server.close(), 'close');
  }
}

function suffer(trouble: OidcTrouble, response: ServerResponse): void {
  if (trouble === 'hang') return;
  response.writeHead(trouble.status, { 'content-type': 'application/json' }).end(trouble.body);
}
