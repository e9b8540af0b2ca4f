import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where `npm run test:setup` keeps what it makes, by version. */
export function cachePath(name: string): string {
  const { ATOLL_CACHE_DIR: given, XDG_CACHE_HOME: home = join(homedir(), '.cache') } = process.env;
  return join(given ?? join(home, 'atoll'), name);
}

/** The tree of a small Debian: see tools/test-setup.sh. */
export const baseTree = cachePath('base-1');

/** Why specs that start hosts of their own cannot run here; undefined: they can. */
export function hostsLack(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'hosts in namespaces need root on Linux';
  return existsSync(join(baseTree, 'usr/sbin/sshd')) ? undefined : 'the base tree was not found';
}

/**
 * Path of Chromium: `ATOLL_TEST_CHROMIUM`, or what is installed, or where it would be. Its shell has no windows of a
 * desktop, which take a third of its work, and which nobody sees in a test.
 */
export function chromiumPath(): string {
  const [shell, full] = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'] as const;
  return process.env['ATOLL_TEST_CHROMIUM'] ?? (existsSync(shell) ? shell : full);
}
