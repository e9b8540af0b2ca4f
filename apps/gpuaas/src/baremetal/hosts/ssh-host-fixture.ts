import { generateKeyPair, SshError, SshSession, type SshCredential } from '@atoll/ssh';
import { startSshHost, type SshHost, type SshHostOptions } from '@atoll/testing';
import type { HostUnderContract } from './host-driver-contract-fixture.js';
import { SshHosts } from './ssh-hosts.js';

const local = { allowLoopback: true, connectMs: 60_000 };

/** Whether an ordinary client gets in. Throws where the host gives no answer to that. */
export async function opens(host: SshHost, user: string, credential: SshCredential): Promise<boolean> {
  try {
    const target = { host: '127.0.0.1', port: host.port, hostKey: host.hostKey, user, credential };
    (await SshSession.open(target, local, AbortSignal.timeout(60_000))).close();
    return true;
  } catch (error) {
    if (error instanceof SshError && error.kind === 'authentication') return false;
    throw error;
  }
}

/** A real sshd, and a driver for it. `isSudoer`: the platform logs in by key as a user with password-less sudo. */
export async function startSshHostUnderContract({
  isSudoer = false,
  ...options
}: SshHostOptions & { isSudoer?: boolean } = {}): Promise<HostUnderContract & { real: SshHost }> {
  const real = await startSshHost(options);
  const { publicKey, privateKey } = generateKeyPair();
  if (isSudoer) {
    await real.inside(
      `mkdir -p -m 700 ~atoll/.ssh && echo '${publicKey}' > ~atoll/.ssh/authorized_keys && chown -R atoll ~atoll/.ssh`,
    );
  }
  return {
    real,
    driver: new SshHosts({ ...local, maxConnections: 10, waitMs: 60_000 }),
    host: {
      nodeId: '1',
      name: 'metal',
      driver: 'ssh',
      host: '127.0.0.1',
      port: real.port,
      user: isSudoer ? 'atoll' : 'root',
      credential: isSudoer ? { privateKey } : { password: real.password },
      hostKey: real.hostKey,
    },
    opens: (username, secret) =>
      opens(real, username, 'password' in secret ? secret : { privateKey: secret.privateKey }),
    stop: () => real.stop(),
  };
}
