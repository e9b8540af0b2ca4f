import { hostName, Text, WholeNumber } from '@atoll/contracts';
import {
  defaultHistoryRetentionDays,
  defaultSimulatedHost,
  HistoryRetention,
  HttpUrl,
  IpAddress,
  mostOfAny,
  SealKeys,
  SimulatedHost,
  Variable,
} from '@atoll/service';
import type { WorkerOptions } from '@atoll/state-machine';
import { IsOptional, IsString, Matches } from 'class-validator';
import { usualConnectionLimits } from './log-ins/connection-limits.js';
import { usualDoorLimits } from './ssh-door/door-limits.js';

/** What a deployment decides about the pods service. */
export class PodsSettings {
  @SealKeys()
  sealKeys: string = '';

  @SimulatedHost()
  simulatedHost: string = defaultSimulatedHost;

  /** External ports of exposed services, first and last. */
  @Variable('ATOLL_EXPOSED_PORTS')
  @Matches(/^[1-9]\d{0,4}-[1-9]\d{0,4}$/, {
    message: 'ATOLL_EXPOSED_PORTS must be two ports, first-last, such as 30086-32767',
  })
  exposedPorts: string = '30086-32767';

  /**
   * Files of the certificate chain and its key (PEM) with which TLS ends in front of pods; self-signed without. Read
   * again when they change.
   */
  @Variable('ATOLL_TLS_CERT')
  @IsOptional()
  @IsString()
  tlsCert: string | undefined = undefined;

  @Variable('ATOLL_TLS_KEY')
  @IsOptional()
  @IsString()
  tlsKey: string | undefined = undefined;

  /** Objects on one cluster that no row needs and that are removed at once. Where there are more, none is removed. */
  @Variable('ATOLL_ORPHANS_AT_ONCE')
  @WholeNumber({ min: 0, max: 100_000 })
  orphansAtOnce: number = 20;

  /** Milliseconds between two looks for such objects, and for which one is left alone. */
  orphanLookMs: number = 60_000;
  orphanGraceMs: number = 600_000;

  /** Steps of one kind (of pods or exposed services) that one process has under way at once. */
  steps: number = 500;

  /** Of those, steps that talk to one cluster. Each replica counts for itself. */
  stepsPerCluster: number = 16;

  /** The port of the SSH door in front of all pods; `off`: none. */
  @Variable('ATOLL_SSH_PORT')
  @Matches(/^(?:off|\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])$/, {
    message: 'ATOLL_SSH_PORT must be a port from 0 to 65535, or off',
  })
  sshPort: string = '2222';

  /** The name or address at which people reach the SSH door. */
  @Variable('ATOLL_SSH_PUBLIC_HOST')
  @Text(hostName)
  sshPublicHost: string = '127.0.0.1';

  /** The address on which the SSH door listens. */
  @Variable('ATOLL_SSH_HOST')
  @IpAddress()
  sshHost: string = '127.0.0.1';

  /**
   * The address on which this replica takes terminals from gateways, at any port. A wildcard is reached by the name of
   * its host.
   */
  @Variable('ATOLL_TERMINAL_HOST')
  @IpAddress()
  terminalHost: string = '127.0.0.1';

  /** Connections to pods that this replica has open at once, SSH and terminals together. */
  @Variable('ATOLL_POD_CONNECTIONS')
  @WholeNumber({ min: 1, max: 10_000 })
  connections: number = usualConnectionLimits.connections;

  /** Of those, of one team. */
  @Variable('ATOLL_POD_CONNECTIONS_PER_TEAM')
  @WholeNumber({ min: 1, max: 10_000 })
  connectionsPerTeam: number = usualConnectionLimits.connectionsOfTeam;

  /** Of those, of one user. */
  @Variable('ATOLL_POD_CONNECTIONS_PER_USER')
  @WholeNumber({ min: 1, max: 10_000 })
  connectionsPerUser: number = usualConnectionLimits.connectionsOfUser;

  /** Log-ins of a user in a minute, by SSH and to terminals together; those of a team may be five times as many. */
  @Variable('ATOLL_POD_LOG_INS_PER_USER')
  @WholeNumber({ min: 1, max: 100_000 })
  logInsPerUser: number = usualConnectionLimits.logInsOfUser;

  /**
   * SSH connections of one network in a minute that tried keys and ended without a log-in; more are refused, as are
   * those beyond four times as many that did not log in.
   */
  @Variable('ATOLL_SSH_FAILED_LOG_INS')
  @WholeNumber({ min: 1, max: 100_000 })
  sshFailedLogIns: number = usualDoorLimits.failuresOfNetwork;

  /** Where logs of pods are kept, `http://user:password@host:3100`; in the service's own database without. */
  @Variable('LOKI_URL')
  @HttpUrl(3100)
  lokiUrl: string | undefined = undefined;

  /** Days for which lines of logs are kept. */
  @Variable('ATOLL_LOG_RETENTION')
  @WholeNumber({ min: 1, max: 365, unit: 'days' })
  logRetentionDays: number = 7;

  /** Days for which log-ins to pods are kept, for the audit. */
  @Variable('ATOLL_LOG_IN_RETENTION')
  @WholeNumber({ min: 1, max: 3_650, unit: 'days' })
  logInRetentionDays: number = 90;

  @HistoryRetention()
  historyRetentionDays: number = defaultHistoryRetentionDays;

  /** Lines that a pod may write to its log in a second, on average over 10 s. */
  @Variable('ATOLL_LOG_LINES_PER_SECOND')
  @WholeNumber({ min: 1, max: mostOfAny })
  logLinesPerSecond: number = 1_000;

  /** KiB that a pod may write to its log in a second, on average over 10 s. */
  @Variable('ATOLL_LOG_KIB_PER_SECOND')
  @WholeNumber({ min: 16, max: mostOfAny })
  logKibPerSecond: number = 256;

  /** MiB that the pods of one team may write to their logs in a day. */
  @Variable('ATOLL_LOG_TEAM_MIB_PER_DAY')
  @WholeNumber({ min: 1, max: mostOfAny })
  logTeamMibPerDay: number = 4_096;

  /** Milliseconds for which a simulated image is pulled: long enough to be seen. */
  simulatedPullMs: number = 300;

  /** Milliseconds between two looks at all pods that run. */
  sweepMs: number = 5_000;

  /** Milliseconds between two looks at all shared volumes. */
  volumeSweepMs: number = 30_000;

  /** Milliseconds between two looks at how much pods use their GPUs. */
  idleLookMs: number = 60_000;

  /** For specs: epoch milliseconds, in place of the clock of the database. */
  now: (() => number) | undefined = undefined;

  /** Milliseconds before the first restart of a pod whose process ended; doubled with each further one. */
  restartMs: number = 2_000;

  /** How machines are worked. */
  workers: Partial<WorkerOptions> & { isIdle?: boolean } = {};
}
