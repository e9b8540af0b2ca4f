import type { X509Certificate } from 'node:crypto';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** The first line that a TCP or TLS server answers to `hello`. */
export function say(url: string): Promise<{ line: string; certificate?: X509Certificate | undefined }> {
  const { protocol, hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const secure =
      protocol === 'tls:' ? connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false }) : undefined;
    const socket = secure ?? connect(Number(port), hostname);
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      const certificate = secure?.getPeerX509Certificate();
      socket.destroy();
      resolve({ line: chunk.toString().trim(), certificate });
    });
    socket.write('hello\n');
  });
}
