import { requireFreeDataFolder } from '@atoll/database';
import {
  DataFolderEnv,
  listenersOf,
  loadLocalSecrets,
  newLocalSecrets,
  publicHost,
  readSettings,
  requireFreePorts,
  type ServiceDefinition,
} from '@atoll/service';
import { GatewayEnv, gatewayListeners } from '../../gateway/src/create-gateway.js';
import { PlatformEnv, settingsSource } from './env.js';
import { services } from './services.js';

export interface ConfiguredService {
  readonly service: ServiceDefinition;
  readonly settings: object;
}

/** What an operator decided about the platform in one process. */
export interface PlatformSettings {
  readonly env: PlatformEnv;
  readonly dataDir: string;
  /** A free one. */
  readonly port: number;
  readonly gatewayEnv: GatewayEnv;
  readonly configured: readonly ConfiguredService[];
}

const all = [{ settings: DataFolderEnv }, { settings: PlatformEnv }, { settings: GatewayEnv }, ...services] as const;

/** Reads all settings before anything is started. Throws one Error with all that is wrong with them. */
export async function readPlatform(): Promise<PlatformSettings> {
  // A start that is refused leaves no secrets in the data folder, so any will do until then.
  const [{ dataDir }, env, gatewayBefore, ...before] = await readSettings(all, settingsSource(newLocalSecrets));
  requireFreeDataFolder(dataDir);
  const listeners = [...gatewayListeners(env, gatewayBefore), ...listenersOf(services, before)];
  const [port = env.PORT] = await requireFreePorts(listeners, 'npm start');
  const source = settingsSource(() => loadLocalSecrets(dataDir));
  // Again, since what the public address is by default is known only now.
  const ATOLL_PUBLIC_URL = `http://${publicHost(env.HOST)}:${port}`;
  const [, , gatewayEnv, ...settings] = await readSettings(all, { ATOLL_PUBLIC_URL, ...source });
  const configured = services.flatMap((service, at) => (settings[at] ? [{ service, settings: settings[at] }] : []));
  return { env, dataDir, port, gatewayEnv, configured };
}
