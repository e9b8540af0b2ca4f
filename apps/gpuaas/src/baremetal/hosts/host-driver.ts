import type { BaremetalDriver, BaremetalFindings, HomeRule } from '@atoll/contracts/gpuaas';
import type { SshCredential } from '@atoll/ssh';
import { StepFailed, type MachineRow, type Outcome, type StepContext } from '@atoll/state-machine';

/** A host, and how the platform logs in to it. */
export interface HostRef {
  readonly nodeId: string;
  /** Of the node. Simulated hosts choose their failures by it. */
  readonly name: string;
  readonly driver: BaremetalDriver;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly credential: SshCredential;
  /** `SHA256:…`; null: whatever key the host shows is taken. */
  readonly hostKey: string | null;
}

/** What a tenant gets on a host, or is to lose there. */
export interface Tenancy {
  readonly instanceId: string;
  readonly username: string;
  readonly password: string;
  /** By which the platform proves that log-in by key works. Taken out again before the instance is active. */
  readonly proofKey: { readonly publicKey: string; readonly privateKey: string };
  /** Public keys, each as a line of `authorized_keys`. */
  readonly keys: readonly string[];
  readonly hasSudo: boolean;
  readonly home: HomeRule;
  /**
   * Grows with each try of an instance's step; cleaning repeats the last number. A host refuses what has a smaller
   * number than it has seen.
   */
  readonly fence: string;
}

export interface Inspection {
  readonly hostKey: string;
  readonly found: BaremetalFindings;
  /**
   * The greatest number that the host has seen; "0" for a new one. Another platform, or a node that was deleted, may
   * have used it.
   */
  readonly fence: string;
  /** The machine id of systemd; "" if the host has none. */
  readonly machineId: string;
}

/** Code of the `StepFailed` of a call that has not begun: the platform has no connection to spare. */
export const crowdedCode = 'connections_in_use';
const crowdedAgainMs = 1_000;

export function isCrowded(error: unknown): boolean {
  return error instanceof StepFailed && error.code === crowdedCode;
}

/** Whether the host has seen a greater number than that of the call. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof StepFailed && error.code === 'superseded';
}

/**
 * The outcome of a step on hosts. One that has not begun for want of a connection is run again, and is no failed try.
 */
export async function unlessCrowded<Row extends MachineRow, Event extends string>(
  { deadlineAt }: Row,
  step: () => Promise<Outcome<Row, Event>>,
): Promise<Outcome<Row, Event>> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof StepFailed && isCrowded(error))) throw error;
    return {
      againAfterMs: crowdedAgainMs,
      ...(deadlineAt && { reason: { code: error.code, message: error.message } }),
    };
  }
}

/**
 * The port to bare-metal hosts. Each call throws `StepFailed`, permanent where another try makes no sense, and with
 * `crowdedCode` where it has not begun; is safe to repeat; and ends when the signal of its context is aborted.
 */
export interface HostDriver {
  /**
   * Looks whether the platform can work on the host, and what it has: reachable, host key, log-in, privileges, tools,
   * and no user left there by another tenancy. Changes nothing. Counts as a look: see `look`.
   */
  inspect(host: HostRef, context: StepContext): Promise<Inspection>;

  /** The greatest number that the host has seen, as `inspect` finds it, whoever is on the host. Changes nothing. */
  seen(host: HostRef, context: StepContext): Promise<string>;

  /** As `reach`, in the background: looks have half of the connections, but at least one. `inspect` goes first. */
  look(host: HostRef, context: StepContext): Promise<void>;

  /** Connects and logs in. Changes nothing. */
  reach(host: HostRef, context: StepContext): Promise<void>;

  /** Creates the user, who cannot log in yet. Refuses where the host holds another tenancy. */
  createUser(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;

  /** Lets the user log in by the proof key, and by no other that the platform once placed. */
  placeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;

  setPassword(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;

  /**
   * Proves that the user logs in by password and by the proof key. Then, as its last change, it lets the user log in by
   * `keys` in place of the proof key: before, nobody of the team is on the host who could prevent the proof.
   */
  verify(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;

  /** Lets the user log in by `keys`, and by no other that the platform once placed. */
  changeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;

  /**
   * Undoes all of it, in whatever part it was done. First the door is shut, even where it then throws because the host
   * is full, is at work on something else, or has seen a greater number. Ends the user's processes, archives or removes
   * the home folder, removes the user, and proves that neither password nor proof key opens the door.
   */
  revoke(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void>;
}
