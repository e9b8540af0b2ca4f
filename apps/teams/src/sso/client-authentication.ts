import { ClientSecretBasic, ClientSecretPost, type ClientAuth } from 'openid-client';

/**
 * Sends the client secret by HTTP Basic, which every provider must accept (RFC 6749, 2.3.1) and which is meant where
 * the metadata lists no method (OpenID Connect Discovery, 3); in the body only where the metadata lists
 * `client_secret_post` without `client_secret_basic`.
 */
export function clientAuthentication(secret: string): ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? [];
    const takesBodyOnly = methods.includes('client_secret_post') && !methods.includes('client_secret_basic');
    (takesBodyOnly ? post : basic)(server, ...rest);
  };
}
