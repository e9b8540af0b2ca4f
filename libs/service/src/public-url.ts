import { Matches } from 'class-validator';

/** Default public URL of `npm start`: a host name, since passkeys do not work with IP addresses. */
export const defaultPublicUrl = 'http://localhost:3000';

/**
 * The address of the platform as people reach it: scheme, host and port, nothing behind them. Links and cookies follow
 * from it, never from a request.
 */
export function PublicUrl(): PropertyDecorator {
  return Matches(/^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$|^https?:\/\/\[[0-9a-f:]+\](?::\d{1,5})?$/, {
    message: 'ATOLL_PUBLIC_URL must be a URL such as https://atoll.example.com, in lower case and without a path',
  });
}
