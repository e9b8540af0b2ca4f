import { createHmac, randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { dial, SshError } from '@atoll/ssh';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';

const signatureHeader = 'atoll-signature';
const largestAnswer = 64 * 1024;

/** A token that names its node, so that the callback finds it. 256 random bits. */
export function createReinstallToken(nodeId: string): string {
  return `${nodeId}.${randomBytes(32).toString('base64url')}`;
}

/** The header that proves who has sent a body: HMAC-SHA-256 over the time in seconds, a dot and the body. */
function signatureOf(body: string, secret: string, atSeconds: number): string {
  return `t=${atSeconds},v1=${createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex')}`;
}

/** Asks the operator's hook to install a host anew. */
@Injectable()
export class ReinstallHook {
  constructor(private readonly settings: GpuaasSettings) {}

  /** Whether hooks can be called at all: a secret signs the call, and the callback needs an address. */
  get isUsable(): boolean {
    return this.settings.reinstallSecret !== undefined;
  }

  /** Safe to repeat: the hook sees the same token. Throws `StepFailed`. */
  async call(
    { nodeId, name, host, reinstallUrl }: BaremetalNodeEntity,
    token: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { reinstallSecret, publicUrl } = this.settings;
    if (reinstallSecret === undefined || reinstallUrl === null) {
      throw new StepFailed(
        'reinstall_unset',
        'ATOLL_REINSTALL_SECRET is not set, so the reinstall hook cannot be called.',
        true,
      );
    }
    const body = JSON.stringify({
      token,
      node_id: nodeId,
      name,
      host,
      callback_url: `${publicUrl.replace(/\/$/, '')}/api/baremetal/reinstall-callback`,
    });
    const signature = signatureOf(body, reinstallSecret, Math.floor(Date.now() / 1000));
    const status = await this.post(new URL(reinstallUrl), body, signature, signal);
    if (status >= 200 && status < 300) return;
    const isPermanent = status >= 400 && status < 500 && status !== 408 && status !== 429;
    throw new StepFailed('reinstall_refused', `The reinstall hook answered ${status}.`, isPermanent);
  }

  /** The connection goes to an address that was checked. A redirect is an answer like any other. */
  private async post(url: URL, body: string, signature: string, signal: AbortSignal): Promise<number> {
    const isSecure = url.protocol === 'https:';
    const port = Number(url.port) || (isSecure ? 443 : 80);
    const hostname = url.hostname.replace(/^\[|\]$/g, '');
    try {
      const socket = await dial(hostname, port, { allowLoopback: this.settings.allowLoopbackHosts }, signal);
      const options: RequestOptions = {
        method: 'POST',
        host: hostname,
        port,
        path: `${url.pathname}${url.search}`,
        headers: {
          host: url.host,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          [signatureHeader]: signature,
        },
        agent: false,
        signal,
        createConnection: () => (isSecure ? connectTls({ socket, servername: hostname }) : socket),
      };
      return await new Promise<number>((resolve, reject) => {
        const answered = (incoming: IncomingMessage): void => {
          let bytes = 0;
          incoming.on('data', (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > largestAnswer) incoming.destroy();
          });
          incoming.on('error', () => undefined).on('close', () => socket.destroy());
          resolve(incoming.statusCode ?? 0);
        };
        const outgoing = isSecure ? httpsRequest(options, answered) : httpRequest(options, answered);
        outgoing.on('error', reject).end(body);
      });
    } catch (error) {
      if (signal.aborted) throw error;
      const why =
        error instanceof SshError ? error.message.replaceAll(/\bon its SSH port/g, '') : 'The connection failed.';
      const isPermanent = error instanceof SshError && error.kind === 'address_forbidden';
      throw new StepFailed('reinstall_unreachable', `The reinstall hook cannot be called: ${why}`, isPermanent, {
        cause: error,
      });
    }
  }
}
