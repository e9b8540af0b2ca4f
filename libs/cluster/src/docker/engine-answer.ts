/**
 * The fields of the Docker Engine API that are read here. API 1.41:
 * https://docs.docker.com/reference/api/engine/version/v1.41/
 */
export interface ContainerAnswer {
  readonly Id: string;
  readonly Created: string;
  readonly State: {
    /**
     * `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`; Podman: `configured`, `initialized`,
     * `stopping`, `stopped` too.
     */
    readonly Status: string;
    readonly OOMKilled: boolean;
    readonly ExitCode: number;
    readonly Error: string;
    /** `0001-01-01T00:00:00Z` before the first start. */
    readonly StartedAt: string;
    readonly FinishedAt: string;
  };
  readonly HostConfig: { readonly Memory: number; readonly DeviceRequests?: readonly unknown[] | null };
  readonly Config: { readonly Labels: Labels | null };
  readonly NetworkSettings?: NetworkSettings;
}

interface NetworkSettings {
  readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>> | null;
}

export type Labels = Readonly<Record<string, string>>;

export interface ListedContainer {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Image: string;
  readonly Labels: Labels | null;
  readonly State: string;
  /** Unix seconds. */
  readonly Created: number;
  readonly NetworkSettings?: NetworkSettings;
}

/** Of Podman's own API: ListContainer. */
export interface PodmanListedContainer {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Image: string;
  readonly Labels: Labels | null;
  readonly State: string;
  /** RFC 3339. */
  readonly Created: string;
}

export interface ImageAnswer {
  /** Labels, variables, command and more, which each container of the image gets. */
  readonly Config?: { readonly Volumes?: object | null } | null;
}

export interface VolumeAnswer {
  readonly Name: string;
  readonly CreatedAt?: string;
  readonly Labels: Labels | null;
  readonly UsageData?: { readonly Size: number } | null;
}

export interface NetworkAnswer {
  readonly Labels: Labels | null;
}

/** Of Podman's own API: NetworkLsLibpod, NetworkInspectLibpod. */
export interface PodmanNetworkAnswer {
  readonly labels?: Labels | null;
  readonly subnets?: readonly { readonly gateway?: string }[] | null;
}

export interface EventAnswer {
  readonly Type: string;
  readonly Actor: { readonly Attributes: Labels | null };
}

export interface InfoAnswer {
  readonly ID: string;
  readonly Name: string;
  readonly DockerRootDir: string;
  readonly ServerVersion: string;
  readonly NCPU: number;
  readonly MemoryLimit: boolean;
  readonly CpuCfsQuota: boolean;
  readonly PidsLimit: boolean;
  readonly SecurityOptions?: readonly string[] | null;
  /** Docker, from 25 on: where it looks for CDI devices; empty while its feature `cdi` is off. */
  readonly CDISpecDirs?: readonly string[] | null;
}
