import type { FastifyRequest } from 'fastify';

/** Ends before the last segment of a billing path where that is empty. */
const withoutTimezone = /^(\/api\/(?:team|workspace)-billing\/[^?#]*[^/?#])\/(?=$|[?#])/;

/**
 * RFC 9112, 3.2.2: a request target may be a whole URL. From here on it is its path and query. The last segment of a
 * billing path, the timezone, may be empty, which is as good as left out.
 */
export function originForm({ url = '/' }: { url?: string }): string {
  const target = url.replace(/^https?:\/\/[^/?#]*/i, '').replace(withoutTimezone, '$1');
  return target === '' || target.startsWith('?') ? `/${target}` : target;
}

/** The path of a request as it came, without its query. */
export function pathOf(request: FastifyRequest): string {
  const url = request.raw.url ?? '/';
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}

/** Segment by segment, as routes see it; as it came where that cannot be done. */
export function decodedPath(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return path
      .split('/')
      .map((segment) => encodeURIComponent(decodeURIComponent(segment)))
      .join('/');
  } catch {
    return path;
  }
}

/** Characters of a path that are logged at most. */
const maxLogged = 2 * 1024;

/**
 * The path for the log, where a key is redacted by its form. Percent-encoding, however many times over, could give it
 * another: a segment that has any is left out, but for the colons of an instant. A long path ends with `[cut]` in place
 * of the first segment that has no room, since a part of a key has another form too.
 */
export function loggablePath(request: FastifyRequest): string {
  const whole = pathOf(request);
  const path = whole.length <= maxLogged ? whole : `${whole.slice(0, whole.lastIndexOf('/', maxLogged) + 1)}[cut]`;
  if (!path.includes('%')) return path;
  return path
    .replace(/%3a/gi, ':')
    .split('/')
    .map((segment) => (segment.includes('%') ? '[encoded]' : segment))
    .join('/');
}
