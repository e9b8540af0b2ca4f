/**
 * Image references as the container world writes and reads them
 * (grammar: https://github.com/distribution/reference; short names: Docker's `docker.io/library/…:latest`).
 */
export interface ImageReference {
  /** With its registry, written out: `docker.io/library/nginx`. */
  readonly repository: string;
  readonly tag?: string;
  /** `sha256:…`: the content itself, whatever the tag says. */
  readonly digest?: string;
}

const hostForm =
  /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f]*:[0-9a-f:]*\])(?::\d{1,5})?$/;
const pathForm = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*$/;
const tagForm = /^\w[\w.-]{0,127}$/;
const digestForm = /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;
const longestRepository = 255;

/**
 * What comes before the first slash is a registry if it has a dot or a port or is `localhost`; otherwise it is part of
 * the path.
 */
function splitRegistry(name: string): { registry: string; path: string } {
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  if (!/[.:]/.test(first) && first !== 'localhost') return { registry: 'docker.io', path: name };
  const registry = first.toLowerCase();
  return { registry: registry === 'index.docker.io' ? 'docker.io' : registry, path: name.slice(slash + 1) };
}

/** The repository with registry and `library/` filled in; null where the text names none. */
function parseRepository(name: string): string | null {
  // A bare name of 64 hexadecimal digits is an image id to a container runtime, not a repository.
  if (/^[0-9a-f]{64}$/.test(name)) return null;
  const { registry, path } = splitRegistry(name);
  const fullPath = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  const repository = `${registry}/${fullPath}`;
  return hostForm.test(registry) && pathForm.test(fullPath) && repository.length <= longestRepository
    ? repository
    : null;
}

/** Reads a reference; null where the text is none. A tag that is left out stays left out. */
export function parseImageReference(text: string): ImageReference | null {
  const [named = '', digest, ...rest] = text.split('@');
  if (rest.length > 0 || (digest !== undefined && !digestForm.test(digest))) return null;
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  const tag = colon === -1 ? undefined : named.slice(colon + 1);
  if (tag !== undefined && !tagForm.test(tag)) return null;
  const repository = parseRepository(colon === -1 ? named : named.slice(0, colon));
  if (repository === null) return null;
  return { repository, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
}

/** One spelling for one image: `nginx` becomes `docker.io/library/nginx:latest`. */
export function normalisedImage({ repository, tag, digest }: ImageReference): string {
  const named =
    tag === undefined && digest === undefined
      ? `${repository}:latest`
      : repository + (tag === undefined ? '' : `:${tag}`);
  return digest === undefined ? named : `${named}@${digest}`;
}

/**
 * Whether a policy's reference covers an image. Without a tag it covers the whole repository; with one, that tag alone;
 * with a digest, that content alone. An image asked for by digest is not covered by a tag: a runtime then ignores the
 * tag and runs the digest.
 */
export function coversImage(allowed: ImageReference, image: ImageReference): boolean {
  if (allowed.repository !== image.repository) return false;
  if (allowed.digest !== undefined) return allowed.digest === image.digest;
  if (allowed.tag === undefined) return true;
  return image.digest === undefined && allowed.tag === (image.tag ?? 'latest');
}
