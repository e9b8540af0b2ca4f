import { Statements } from '@atoll/database';
import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { GpuaasSettings } from '../gpuaas-settings.js';

/** Completes the name of a field or setting. */
export const mustBeOtherHost =
  'must be another host than that of ATOLL_PUBLIC_URL: browsers send the session cookie of a host to all its ports, ' +
  'and so to exposed services; use another name, or the address, of the engine’s host';

/**
 * Whether pages at `host`, a name or an IP address, get the cookies that a browser has for the host of `publicUrl`.
 * Neither the port nor the scheme keeps cookies apart (RFC 6265, 8.5); a host is one in all its spellings (WHATWG URL).
 */
export function isConsoleHost(host: string, publicUrl: string): boolean {
  return spelling(host) === spelling(new URL(publicUrl).hostname);
}

function spelling(host: string): string {
  const url = `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}`;
  return (URL.canParse(url) ? new URL(url).hostname : host.toLowerCase()).replace(/\.$/, '');
}

/**
 * Says which clusters are at the console's host, as they were set by an earlier release or before `ATOLL_PUBLIC_URL`
 * changed. They go on working.
 */
@Injectable()
export class ConsoleHostWarning implements OnApplicationBootstrap {
  private readonly logger = new Logger('Clusters');

  constructor(
    private readonly statements: Statements,
    private readonly settings: GpuaasSettings,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const clusters = await this.statements.query<{ gpuaas_id: string; public_host: string }>(
      `SELECT gpuaas_id::text, public_host FROM cluster WHERE driver = 'docker' ORDER BY cluster.gpuaas_id`,
      [],
    );
    const found = clusters.filter(({ public_host }) => isConsoleHost(public_host, this.settings.publicUrl));
    if (found.length === 0) return;
    const ids = found.map(({ gpuaas_id }) => gpuaas_id).join(', ');
    this.logger.warn(
      `Exposed services can take over sessions: public_host of the cluster of GPU service ${ids} ${mustBeOtherHost}`,
    );
  }
}
