import { DockerDriver } from './docker-driver.js';
import type { EngineAddress } from './engine-connection.js';

/** What an operator says of a container engine, as it is kept and sent: sealed. */
export interface DockerSettings {
  readonly socket?: string;
  readonly url?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly doorImage: string;
}

/**
 * Opens the driver of an engine; connects to nothing yet. Throws an Error where neither a socket nor an address is
 * given.
 */
export function openDocker(settings: DockerSettings, installationId: string, publicHost: string): DockerDriver {
  return new DockerDriver({ installationId, publicHost, doorImage: settings.doorImage, address: addressOf(settings) });
}

function addressOf({ socket, url, ca, cert, key }: DockerSettings): EngineAddress {
  if (socket !== undefined) return { socketPath: socket };
  if (url !== undefined && ca !== undefined && cert !== undefined && key !== undefined)
    return { url, ca, certificate: cert, key };
  throw new Error('A container engine needs a socket, or url, ca, cert and key.');
}
