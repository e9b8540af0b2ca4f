import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DockerDriver, type ClusterDriver, type PodRun } from '@atoll/cluster';
import { fingerprintOf, generateKeyPair, parsePublicKey } from '@atoll/ssh';
import { podmanImage, startPodman, timeoutFactor, type Podman } from '@atoll/testing';
import { AdmissionControl, LogInTrail, type Admission } from '../log-ins/admission-control.js';
import { ConnectionRegistry } from '../log-ins/connection-registry.js';
import { SshDoor, type SshDoorOptions } from './ssh-door.js';

const run = promisify(execFile);
const patienceMs = 90_000 * timeoutFactor;
const soon = () => AbortSignal.timeout(patienceMs);
const wanted = () => Promise.resolve(true);

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const lateMs = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > lateMs) throw new Error('The condition was not met in time.');
    await delay(20);
  }
}

/** Lets in whom the spec names: the real one has a spec of its own. */
class ListedAdmissions extends AdmissionControl {
  readonly admissions = new Map<string, Admission>();
  readonly revocations = new Map<string, string>();
  isDown = false;
  asked = 0;

  admit(podName: string, fingerprint: string): Promise<Admission | null> {
    this.asked += 1;
    if (this.isDown) return Promise.reject(new Error('the database is away'));
    return Promise.resolve(this.admissions.get(`${podName} ${fingerprint}`) ?? null);
  }

  admitUser(podName: string, userId: string): Promise<Admission | null> {
    return Promise.resolve(this.admissions.get(`${podName} ${userId}`) ?? null);
  }

  revoked(admissions: readonly Admission[]): Promise<ReadonlyMap<Admission, string>> {
    const found = admissions.flatMap((admission) => {
      const reason = this.revocations.get(admission.userId);
      return reason ? [[admission, reason] as const] : [];
    });
    return Promise.resolve(new Map(found));
  }
}

class KeptTrail extends LogInTrail {
  readonly entries: { userId: string; address: string; reason?: string }[] = [];

  began({ userId }: Admission, address: string): Promise<string> {
    this.entries.push({ userId, address });
    return Promise.resolve(String(this.entries.length - 1));
  }

  ended(logInId: string, reason: string): Promise<void> {
    this.entries[Number(logInId)]!.reason = reason;
    return Promise.resolve();
  }
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A door in front of pods on a real Podman, and OpenSSH's own client. */
export class SshDoorFixture {
  readonly admissionControl = new ListedAdmissions();
  readonly trail = new KeptTrail();
  readonly registry = new ConnectionRegistry(this.admissionControl, this.trail, { logInsOfUser: 100_000 });
  readonly #doors: SshDoor[] = [];

  private constructor(
    readonly podman: Podman,
    readonly driver: ClusterDriver,
    readonly folder: string,
    private readonly hostKey: string,
  ) {}

  static async start(): Promise<SshDoorFixture> {
    const podman = await startPodman({ hasOwnNetwork: true });
    const address = { socketPath: podman.socketPath };
    const driver = new DockerDriver({
      installationId: randomUUID(),
      address,
      publicHost: '127.0.0.1',
      doorImage: podmanImage,
    });
    const folder = await mkdtemp(join(tmpdir(), 'atoll-ssh-'));
    return new SshDoorFixture(podman, driver, folder, generateKeyPair().privateKey);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#doors.map((door) => door.close()));
    await this.driver.close();
    await this.podman.stop();
    await rm(this.folder, { recursive: true });
  }

  /** On any free port unless one is given; does not wait until it has it. */
  door(more: Partial<SshDoorOptions> = {}): SshDoor {
    const { admissionControl, registry, hostKey } = this;
    const door = new SshDoor({ host: '127.0.0.1', port: 0, hostKey, admissionControl, registry, ...more });
    this.#doors.push(door);
    return door;
  }

  async openDoor(more: Partial<SshDoorOptions> = {}): Promise<SshDoor> {
    const door = this.door(more);
    await door.open();
    return door;
  }

  async pod(script = 'trap "exit 0" TERM; sleep infinity & wait'): Promise<PodRun> {
    const id = randomUUID();
    const pod: PodRun = {
      ref: { kind: 'pod', id, run: 1 },
      owner: { teamId: randomUUID(), workspaceId: randomUUID() },
      podName: `train-${id.slice(0, 5)}`,
      image: podmanImage,
      command: ['bash', '-c', script],
      env: new Map(),
      cpu: null,
      memoryGb: 0.5,
      slices: [],
      volumes: [],
      requestedAt: new Date(),
    };
    await this.driver.startPod(pod, wanted, soon());
    return pod;
  }

  /** A key pair as a user makes it; returns the file of the private one. */
  async key(...options: string[]): Promise<string> {
    const file = join(this.folder, randomUUID().slice(0, 8));
    await run('ssh-keygen', ['-q', '-N', '', '-f', file, ...(options.length > 0 ? options : ['-t', 'ed25519'])]);
    return file;
  }

  /** The holder of the key may use the pod. */
  async invite(pod: PodRun, key: string, more: Partial<Admission> = {}): Promise<Admission> {
    const fingerprint = await fingerprintIn(`${key}.pub`);
    const { owner, podName, ref } = pod;
    const run = { ref, driver: this.driver };
    const who = {
      userId: randomUUID(),
      sshKeyId: randomUUID(),
      podId: ref.id,
      podName,
      teamId: owner.teamId,
      fingerprint,
      credential: null,
    };
    const admission: Admission = { ...who, run, ...more };
    this.admissionControl.admissions.set(`${podName} ${fingerprint}`, admission);
    return admission;
  }

  /** Options of OpenSSH's client that keep it from this machine's own settings. */
  clientOptions(key: string): string[] {
    const settings = [
      'BatchMode=yes',
      'StrictHostKeyChecking=no',
      `UserKnownHostsFile=${this.folder}/known_hosts`,
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      `ConnectTimeout=${10 * timeoutFactor}`,
    ];
    return ['-F', 'none', '-i', key, '-o', 'LogLevel=ERROR', ...settings.flatMap((setting) => ['-o', setting])];
  }

  async ssh(door: SshDoor, key: string, podName: string, words: readonly string[] = [], input = ''): Promise<Outcome> {
    return this.program(
      'ssh',
      [...this.clientOptions(key), '-p', String(door.port), `${podName}@127.0.0.1`, ...words],
      input,
    );
  }

  async program(name: string, words: readonly string[], input = ''): Promise<Outcome> {
    const child = spawn(name, words, { stdio: 'pipe' });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString('latin1')));
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    return { code, stdout, stderr };
  }
}

async function fingerprintIn(file: string): Promise<string> {
  const line = (await readFile(file, 'utf8')).trim();
  try {
    return parsePublicKey(line).fingerprint;
  } catch {
    // Keys that nobody may add are for specs of what the door itself refuses.
    return fingerprintOf(Buffer.from(line.split(' ')[1] ?? '', 'base64'));
  }
}
