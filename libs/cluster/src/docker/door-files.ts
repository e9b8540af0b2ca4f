import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import type { Certificate, Door } from '../objects.js';
import { aliasOf } from './names.js';

/** Inside a door: a volume of its own, so that everything else is read-only. */
export const doorFolder = '/etc/atoll';
/** Written by nginx when its sockets listen. */
export const pidFile = `${doorFolder}/run/nginx.pid`;
/** Names the certificate that nginx has been told to load. */
export const loadedFile = `${doorFolder}/run/loaded`;
/** `nobody` in Debian and Alpine. */
export const doorUser = 65_534;
/** Inside; published as the external port. */
export const doorPort = 9_000;

/** In a shell for the first command alone: after a crash a file of the last process would say that this one listens. */
export const doorCommand = ['sh', '-c', `rm -f ${pidFile}; exec nginx -e stderr -c ${doorFolder}/nginx.conf`];

const dayS = 86_400;

/**
 * nginx as a stream proxy: TCP, UDP, TLS. The pod is found by name at each connection, so the door works for its next
 * run too. https://nginx.org/en/docs/stream/ngx_stream_core_module.html
 */
function doorConfiguration({ podId, port, transport, tls }: Door, resolver: string): string {
  const isUdp = transport === 'udp';
  const parameters = [isUdp && 'udp', tls && 'ssl', !isUdp && 'so_keepalive=60s:10s:6'].filter(Boolean);
  return `include /etc/nginx/modules-enabled/*.conf;
daemon off;
worker_processes 1;
worker_shutdown_timeout ${dayS}s;
pid ${pidFile};
error_log stderr crit;
events { worker_connections 8192; }
stream {
  resolver ${resolver} valid=2s ipv6=off;
  resolver_timeout 5s;
  server {
    listen ${doorPort} ${parameters.join(' ')};
    set $pod ${aliasOf(podId)};
    proxy_pass $pod:${port};
    proxy_connect_timeout 10s;
    proxy_timeout ${isUdp ? 60 : dayS}s;
    proxy_socket_keepalive on;
${isUdp ? '' : '    proxy_half_close on;\n'}${tls ? tlsLines : ''}  }
}
`;
}

/** TLS 1.2 as in Mozilla's intermediate profile, version 5.7. */
const tlsLines = `    ssl_certificate ${doorFolder}/tls.pem;
    ssl_certificate_key ${doorFolder}/tls.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305;
    ssl_session_tickets off;
    ssl_handshake_timeout 15s;
`;

interface File {
  readonly name: string;
  readonly content: string;
  /** Only the user of the door may read it. */
  readonly isSecret?: boolean;
}

/** What a door needs in its folder before it starts. */
export async function doorArchive(door: Door, resolver: string): Promise<Buffer> {
  const configuration = { name: 'nginx.conf', content: doorConfiguration(door, resolver) };
  if (!door.tls) return archive([configuration]);
  return archive([configuration, certificateFile(door.tls), loadedMark(door.tls)]);
}

/** One file, so that chain and key are replaced together. */
export const certificateFile = ({ certificate, key }: Certificate): File => ({
  name: 'tls.pem',
  content: `${certificate.trimEnd()}\n${key.trimEnd()}\n`,
  isSecret: true,
});

export const loadedMark = ({ certificate }: Certificate): File => ({
  name: 'run/loaded',
  content: fingerprintOf(certificate),
});

/** Of the chain, which is public. A new key comes with a new certificate. */
export const fingerprintOf = (certificate: string): string =>
  createHash('sha256').update(certificate.trimEnd()).digest('hex');

/** A tar archive whose files belong to the user of doors, with the folder that this user may write. */
export function archive(files: readonly File[]): Promise<Buffer> {
  const tar = pack();
  const owner = { uid: doorUser, gid: doorUser };
  tar.entry({ name: 'run', type: 'directory', mode: 0o755, ...owner });
  for (const { name, content, isSecret } of files)
    tar.entry({ name, mode: isSecret ? 0o400 : 0o444, ...owner }, content);
  tar.finalize();
  return buffer(tar);
}
