import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

/** A registry on loopback, without TLS: https://distribution.github.io/distribution/spec/api/ */
export interface Registry {
  /** `127.0.0.1:5000` */
  readonly host: string;
  /** How often a manifest was asked for, by repository. */
  readonly asked: ReadonlyMap<string, number>;
  /** Offers an image of one layer with these files. */
  offer(
    repository: string,
    files: Readonly<Record<string, Buffer | string>>,
    command: readonly string[],
  ): Promise<void>;
  /** A repository that wants a log-in. */
  lock(repository: string): void;
  /** Blobs of all images come no further than half, until the function that is returned is called. */
  stall(): () => void;
  stop(): Promise<void>;
}

type Blobs = Map<string, Buffer>;

export async function startRegistry(): Promise<Registry> {
  const manifests = new Map<string, Buffer>();
  const blobs: Blobs = new Map();
  const locked = new Set<string>();
  const asked = new Map<string, number>();
  const stalled: (() => void)[] = [];
  let isStalling = false;
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const [, repository = '', kind, id = ''] =
      /^\/v2\/(?:(.+)\/(manifests|blobs)\/([^/]+))?$/.exec(request.url ?? '') ?? [];
    if (locked.has(repository))
      return refuse(response, 401, 'UNAUTHORIZED', { 'WWW-Authenticate': 'Basic realm="registry"' });
    if (!kind) return void response.end();
    if (kind === 'manifests' && request.method === 'GET') asked.set(repository, (asked.get(repository) ?? 0) + 1);
    const bytes = kind === 'manifests' ? manifests.get(repository) : blobs.get(id);
    if (!bytes) return refuse(response, 404, kind === 'manifests' ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN');
    const type = kind === 'manifests' ? manifestType : 'application/octet-stream';
    response.writeHead(200, {
      'Content-Type': type,
      'Content-Length': bytes.length,
      'Docker-Content-Digest': digestOf(bytes),
    });
    if (request.method === 'HEAD') return void response.end();
    if (kind === 'manifests' || !isStalling) return void response.end(bytes);
    const half = bytes.length >> 1;
    response.write(bytes.subarray(0, half));
    stalled.push(() => response.end(bytes.subarray(half)));
  };
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    offer: async (repository, files, command) => void manifests.set(repository, await imageOf(files, command, blobs)),
    lock: (repository) => void locked.add(repository),
    stall: () => {
      isStalling = true;
      return () => {
        isStalling = false;
        for (const goOn of stalled.splice(0)) goOn();
      };
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';

function refuse(response: ServerResponse, status: number, code: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify({ errors: [{ code, message: code.toLowerCase().replace('_', ' ') }] }));
}

/** Adds the image's blobs, and returns its manifest: https://distribution.github.io/distribution/spec/manifest-v2-2/ */
async function imageOf(
  files: Readonly<Record<string, Buffer | string>>,
  command: readonly string[],
  blobs: Blobs,
): Promise<Buffer> {
  const tar = pack();
  for (const [name, content] of Object.entries(files)) tar.entry({ name, mode: 0o755 }, content);
  tar.finalize();
  const layer = await buffer(tar);
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const rootfs = { type: 'layers', diff_ids: [digestOf(layer)] };
  const configuration = {
    architecture,
    os: 'linux',
    config: { Cmd: command },
    rootfs,
    history: [{ created_by: 'a spec' }],
  };
  const add = (mediaType: string, bytes: Buffer) => {
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const config = add('application/vnd.docker.container.image.v1+json', Buffer.from(JSON.stringify(configuration)));
  const layers = [add('application/vnd.docker.image.rootfs.diff.tar.gzip', gzipSync(layer))];
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: manifestType, config, layers }));
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
