import { ClientSecretBasic, ClientSecretPost, type ClientAuth } from 'openid-client';

/**
 * Sends the client secret in the body where the metadata lists `client_secret_post`. Otherwise by HTTP Basic, which
 * every provider must accept (RFC 6749, 2.3.1) and which is meant where the metadata lists no method (OpenID Connect
 * Discovery, 3). Basic encodes id and secret first, which not every provider decodes.
 */
export function clientAuthentication(secret: string): ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)];
  return (server, ...rest) => {
    const takesBody = server.token_endpoint_auth_methods_supported?.includes('client_secret_post');
    (takesBody ? post : basic)(server, ...rest);
  };
}
