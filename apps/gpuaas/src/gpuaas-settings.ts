import { hostName, imageReference, Text, WholeNumber } from '@atoll/contracts';
import {
  DecimalNumber,
  defaultHistoryRetentionDays,
  defaultPublicUrl,
  defaultSimulatedHost,
  HistoryRetention,
  HttpUrl,
  PublicUrl,
  SealKeys,
  SimulatedHost,
  Variable,
} from '@atoll/service';
import type { WorkerOptions } from '@atoll/state-machine';
import { Transform } from 'class-transformer';
import { IsBoolean, IsIn, IsOptional, Matches, MinLength } from 'class-validator';
import type { BaremetalLimits } from './model/baremetal-instance.machine.js';

/** What a deployment decides about the gpuaas service. */
export class GpuaasSettings {
  /**
   * Where metrics are read, `http://user:password@host:9090`; without, those of simulated clusters are made up, and
   * others have none.
   */
  @Variable('ATOLL_PROMETHEUS_URL')
  @HttpUrl(9090)
  prometheusUrl: string | undefined = undefined;

  /** Steps of one kind (of nodes, GPUs, subscriptions or workloads) that one process has under way at once. */
  @Variable('ATOLL_STEPS')
  @WholeNumber({ min: 1, max: 10_000 })
  steps: number = 500;

  /** Of those, steps that talk to one node. Each replica counts for itself. */
  @Variable('ATOLL_STEPS_PER_NODE')
  @WholeNumber({ min: 1, max: 100 })
  stepsPerNode: number = 4;

  @HistoryRetention()
  historyRetentionDays: number = defaultHistoryRetentionDays;

  /** Without it there is no bare metal. */
  @SealKeys({ optional: true })
  sealKeys: string | undefined = undefined;

  /** Whether hosts and hooks on loopback and link-local addresses may be connected to: for tests and laptops. */
  @Variable('ATOLL_ALLOW_LOOPBACK_HOSTS')
  @Transform(({ value }: { value: unknown }) => (value === 'true' ? true : value === 'false' ? false : value))
  @IsBoolean({ message: 'ATOLL_ALLOW_LOOPBACK_HOSTS must be true or false' })
  allowLoopbackHosts: boolean = false;

  @PublicUrl()
  publicUrl: string = defaultPublicUrl;

  /** Signs the calls of reinstall hooks. */
  @Variable('ATOLL_REINSTALL_SECRET')
  @IsOptional()
  @MinLength(16, { message: 'ATOLL_REINSTALL_SECRET must be at least 16 characters long' })
  reinstallSecret: string | undefined = undefined;

  /** SSH connections that one process has at once; never more than one to a host. */
  @Variable('ATOLL_SSH_CONNECTIONS')
  @WholeNumber({ min: 1, max: 10_000 })
  sshConnections: number = 50;

  /** Seconds between two looks at a bare-metal host. */
  @Variable('ATOLL_BAREMETAL_HEALTH_SECONDS')
  @WholeNumber({ min: 1, max: 86_400 })
  hostHealthSeconds: number = 60;

  /** Hours after which a request for bare metal that got no node fails. */
  @Variable('ATOLL_BAREMETAL_REQUEST_HOURS')
  @DecimalNumber({ min: 0.001, max: 720 })
  requestHours: number = 24;

  /** Minutes that the provisioning of a bare-metal host may take in all. */
  @Variable('ATOLL_BAREMETAL_PROVISION_MINUTES')
  @DecimalNumber({ min: 0.1, max: 240 })
  provisionMinutes: number = 15;

  /** Seconds that one step on a bare-metal host may take. */
  @Variable('ATOLL_BAREMETAL_STEP_SECONDS')
  @DecimalNumber({ min: 0.1, max: 600 })
  hostStepSeconds: number = 30;

  /** Further tries of a step on a bare-metal host. */
  @Variable('ATOLL_BAREMETAL_RETRIES')
  @WholeNumber({ min: 0, max: 20 })
  hostRetries: number = 3;

  /** Seconds before the first of them; doubled before each further one. */
  @Variable('ATOLL_BAREMETAL_RETRY_SECONDS')
  @DecimalNumber({ min: 0.01, max: 600 })
  hostRetrySeconds: number = 2;

  /** Instances in a row that a bare-metal node may fail before it is in maintenance. */
  @Variable('ATOLL_BAREMETAL_FAILURES')
  @WholeNumber({ min: 1, max: 1_000 })
  hostFailures: number = 3;

  /** What runs the pods of a new GPU service. */
  @Variable('ATOLL_CLUSTER')
  @IsIn(['simulated', 'docker'], { message: 'ATOLL_CLUSTER must be simulated or docker' })
  cluster: 'simulated' | 'docker' = 'simulated';

  /**
   * Paths of the sockets of container engines that a cluster may have, comma-separated. Whoever may write to one is
   * root on its host.
   */
  @Variable('ATOLL_DOCKER_SOCKETS')
  @Matches(/^[\s,]*(?:\/[^,]*(?:,[\s,]*|$))*$/, {
    message: 'ATOLL_DOCKER_SOCKETS must be absolute paths, comma-separated, such as /var/run/docker.sock',
  })
  dockerSockets: string = '';

  /**
   * Of clusters by `ATOLL_CLUSTER=docker`: the name or address at which the host of the engine is reached from outside;
   * another host than that of `publicUrl`.
   */
  @Variable('ATOLL_DOCKER_PUBLIC_HOST')
  @Text(hostName)
  dockerPublicHost: string = '127.0.0.1';

  /** Default image of doors and of connections into pods, built from deploy/door. */
  @Variable('ATOLL_DOOR_IMAGE')
  @Text(imageReference)
  doorImage: string = 'localhost/atoll-door:1';

  @SimulatedHost()
  simulatedHost: string = defaultSimulatedHost;

  /** Milliseconds between two looks for clusters to check, and for which a cluster may take to answer. */
  clusterLookMs: number = 5_000;
  clusterPatienceMs: number = 4_000;

  /** Milliseconds until a cluster that was well and missed a check is asked again. */
  clusterAgainMs: number = 5_000;

  /** Clusters that one process checks by itself at once. */
  clusterChecks: number = 64;

  get sockets(): readonly string[] {
    return this.dockerSockets
      .split(',')
      .map((socket) => socket.trim())
      .filter(Boolean);
  }

  /** How long a GPU that could not return to Spatial is left alone. */
  returnRetryMs: number = 30_000;

  /** How often a GPU that somebody has a part of may return to Spatial within so many milliseconds. */
  mostReturns: number = 12;
  returnsWithinMs: number = 300_000;

  /** Before a node whose initialisation failed is tried again; doubled with each further failure, up to ten minutes. */
  initRetryMs: number = 30_000;

  /** How long a simulated device takes to switch: long enough to be seen. */
  simulatedSwitchMs: number = 150;

  /** Milliseconds within which a bare-metal host takes a connection, and then the key exchange of SSH. */
  hostConnectMs: number = 5_000;

  get hostStepMs(): number {
    return Math.ceil(this.hostStepSeconds * 1_000);
  }

  get hostHealthMs(): number {
    return this.hostHealthSeconds * 1_000;
  }

  /** Of the machine of bare-metal instances. */
  get baremetalLimits(): BaremetalLimits {
    return {
      requestMs: Math.ceil(this.requestHours * 3_600_000),
      provisionMs: Math.ceil(this.provisionMinutes * 60_000),
      retries: this.hostRetries,
      backOffMs: this.hostRetrySeconds * 1_000,
    };
  }

  /** How machines are worked. */
  workers: Partial<WorkerOptions> & { isIdle?: boolean } = {};
}
