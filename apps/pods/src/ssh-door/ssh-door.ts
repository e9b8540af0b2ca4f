import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { algorithms } from '@atoll/ssh';
import { Logger } from '@nestjs/common';
import ssh2, { type ClientInfo, type Connection } from 'ssh2';
import type { Admission, Doorkeeper, LogInTrail } from './doorkeeper.js';
import { FailedAttempts } from './failed-attempts.js';
import { usualLimits, type DoorLimits } from './limits.js';
import { Visit } from './visit.js';

export interface SshDoorOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Private key, PEM or OpenSSH's form: the same for all replicas. */
  readonly hostKey: string;
  readonly doorkeeper: Doorkeeper;
  readonly trail: LogInTrail;
  readonly limits?: Partial<DoorLimits>;
  /** Between two looks at who may stay, for what no broadcast has told; 5 s where it is left out. */
  readonly lookMs?: number;
}

interface Guest {
  readonly socket: Socket;
  readonly address: string;
  /** null until the client has said that it speaks SSH. */
  visit: Visit | null;
}

const claimMs = 500;
const closingMs = 3_000;

/**
 * `ssh <pod_name>@host -p <port>`: one SSH server in front of all pods. The port is the claim: of several replicas on one host one has it, and another
 * takes it when that one ends.
 */
export class SshDoor {
  readonly #logger = new Logger(SshDoor.name);
  readonly #limits: DoorLimits;
  readonly #failures: FailedAttempts;
  /** By address and port of the client. */
  readonly #guests = new Map<string, Guest>();
  readonly #server: Server;
  readonly #ssh: ssh2.Server;
  readonly #closed = new AbortController();

  constructor(private readonly options: SshDoorOptions) {
    this.#limits = { ...usualLimits, ...options.limits };
    this.#failures = new FailedAttempts(this.#limits.failuresOfAddress);
    this.#server = createServer({ noDelay: true, keepAlive: true }, (socket) => this.#receive(socket));
    this.#ssh = new ssh2.Server({ hostKeys: [options.hostKey], algorithms, ident: 'Atoll' }, (client, info) => this.#visit(client, info));
  }

  /** Where it listens; null while another process has the port. */
  get port(): number | null {
    return this.#server.listening ? (this.#server.address() as AddressInfo).port : null;
  }

  /** Resolves when the port is claimed, which may be long after the call. */
  async open(): Promise<void> {
    void this.#lookByTime();
    let wasTold = false;
    while (!this.#closed.signal.aborted) {
      const taken = await this.#listen();
      if (!taken) return this.#logger.log({ message: 'SSH door is open', port: this.port });
      if (!wasTold) this.#logger.log({ message: 'Another process has the SSH port; waiting for it', port: this.options.port });
      wasTold = true;
      await delay(claimMs, undefined, { signal: this.#closed.signal }).catch(() => undefined);
    }
  }

  /** Whether the port was taken. */
  async #listen(): Promise<boolean> {
    const { host, port } = this.options;
    this.#server.listen(port, host);
    try {
      await once(this.#server, 'listening');
      return false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return true;
      throw error;
    }
  }

  #receive(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    socket.on('error', () => undefined);
    if (!this.#hasRoomFor(address)) return void socket.destroy();
    const guest: Guest = { socket, address, visit: null };
    const name = nameOf(address, socket.remotePort);
    this.#guests.set(name, guest);
    const grace = setTimeout(() => !guest.visit?.admission && socket.destroy(), this.#limits.graceMs);
    socket.once('close', () => {
      clearTimeout(grace);
      this.#guests.delete(name);
    });
    this.#ssh.injectSocket(socket);
  }

  /** Once a client has said that it speaks SSH. */
  #visit(client: Connection, { ip, port }: ClientInfo): void {
    const guest = this.#guests.get(nameOf(ip, port));
    if (!guest) return void client.end();
    const { socket, address } = guest;
    const visit = (guest.visit = new Visit(client, {
      socket,
      doorkeeper: this.options.doorkeeper,
      limits: this.#limits,
      onFailure: () => this.#failures.add(address),
      hasRoom: ({ userId }) => this.#visits(userId).length < this.#limits.connectionsOfUser,
    }));
    client.once('ready', () => {
      if (visit.admission) void this.#record(visit, visit.admission, guest);
    });
  }

  #hasRoomFor(address: string): boolean {
    if (this.#failures.areTooMany(address) || this.#guests.size >= this.#limits.connections) return false;
    const strangers = [...this.#guests.values()].filter(({ visit }) => !visit?.admission);
    const ofAddress = strangers.filter((guest) => guest.address === address);
    return strangers.length < this.#limits.strangers && ofAddress.length < this.#limits.strangersOfAddress;
  }

  /** Of those who have logged in; of this user alone where one is named. */
  #visits(userId?: string): { visit: Visit; admission: Admission }[] {
    return [...this.#guests.values()].flatMap(({ visit }) => {
      const admission = visit?.admission;
      return admission && (!userId || admission.userId === userId) ? [{ visit, admission }] : [];
    });
  }

  async #record(visit: Visit, admission: Admission, { socket, address }: Guest): Promise<void> {
    const { podName: pod_name, userId: user_id, fingerprint } = admission;
    const about = { pod_name, user_id, fingerprint, address };
    this.#logger.log({ message: 'SSH log-in', ...about });
    // Not `once` of node:events, which rejects when the connection is reset.
    const ended = new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
    try {
      const logInId = await this.options.trail.began(admission, address);
      await ended;
      await this.options.trail.ended(logInId, visit.reason);
    } catch (error) {
      // What cannot be audited is not let in.
      this.#logger.warn({ message: 'Cannot record an SSH log-in; the connection is ended', ...about, err: error });
      visit.end('The log-in could not be recorded. Try again later.');
      await ended;
    }
    this.#logger.log({ message: 'SSH log-out', ...about, reason: visit.reason });
  }

  async #lookByTime(): Promise<void> {
    const { lookMs = 5_000 } = this.options;
    while (!this.#closed.signal.aborted) {
      await this.look();
      await delay(lookMs, undefined, { signal: this.#closed.signal }).catch(() => undefined);
    }
  }

  /** Ends the connections of those who may not stay; of this user alone where one is named. */
  async look(userId?: string): Promise<void> {
    const visits = this.#visits(userId);
    if (visits.length === 0) return;
    try {
      const expelled = await this.options.doorkeeper.expelled(visits.map(({ admission }) => admission));
      for (const { visit, admission } of visits) {
        const reason = expelled.get(admission);
        if (reason) visit.end(reason);
      }
    } catch (error) {
      this.#logger.warn({ message: 'Cannot look who may stay connected by SSH; they stay until the next look', err: error });
    }
  }

  /** Lets the port go at once, so that another replica takes it, and ends what is open. */
  async close(): Promise<void> {
    this.#closed.abort();
    const closed = this.#server.listening ? once(this.#server, 'close') : Promise.resolve();
    this.#server.close();
    for (const { socket, visit } of this.#guests.values()) {
      if (visit) visit.end('The platform restarts here. Log in again.');
      else socket.destroy();
    }
    const cut = setTimeout(() => [...this.#guests.values()].forEach(({ socket }) => socket.destroy()), closingMs);
    await closed;
    clearTimeout(cut);
  }
}

const nameOf = (address: string, port: number | undefined): string => `${address} ${port}`;
