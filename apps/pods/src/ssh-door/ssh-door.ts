import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { networkOf } from '@atoll/contracts';
import { algorithms } from '@atoll/ssh';
import { Turns } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import ssh2, { type ClientInfo, type Connection, type ServerConfig } from 'ssh2';
import { disconnection, refuse } from './disconnection.js';
import type { AdmissionControl } from '../log-ins/admission-control.js';
import type { ConnectionRegistry } from '../log-ins/connection-registry.js';
import { usualDoorLimits, type DoorLimits } from './door-limits.js';
import { MinuteCounts } from '../log-ins/minute-counts.js';
import { PacedSocket } from './paced-streams.js';
import { SshConnection } from './ssh-connection.js';
import { UnreadInput } from './unread-input.js';

export interface SshDoorOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Private key, PEM or OpenSSH's form: the same for all replicas. */
  readonly hostKey: string;
  readonly admissionControl: AdmissionControl;
  readonly registry: ConnectionRegistry;
  readonly limits?: Partial<DoorLimits>;
}

/** A connection, from its first byte. */
interface TcpConnection {
  readonly socket: Socket;
  readonly paced: PacedSocket;
  readonly address: string;
  readonly network: string;
  /** null until the client has said that it speaks SSH. */
  ssh: SshConnection | null;
  /** Of what it said so with, the end of the line included. */
  identificationBytes: number;
}

const claimMs = 500;
/** Of a turn of the event loop, for the bytes of all connections. */
const budgetMs = 2;
const closingMs = 3_000;
/** Of silence, until the host of the client is asked by TCP whether it is there. */
const keepAliveMs = 30_000;
/** A client that lets so many pings go by is gone. */
const unansweredPings = 3;

/**
 * `ssh <pod_name>@host -p <port>`: one SSH server in front of all pods. The port is the claim: of several replicas on
 * one host one has it, and another takes it when that one ends.
 */
export class SshDoor {
  readonly #logger = new Logger(SshDoor.name);
  readonly #limits: DoorLimits;
  /** By network: connections that have tried keys and ended without a log-in. */
  readonly #failures: MinuteCounts;
  /** Those that have begun a key exchange, with or without a key: it costs the processor some milliseconds. */
  readonly #unfinished: MinuteCounts;
  /** By address and port of the client. */
  readonly #connections = new Map<string, TcpConnection>();
  readonly #server: Server;
  readonly #ssh: ssh2.Server;
  readonly #closed = new AbortController();
  /** Encryption takes much of the processor, which calls of everybody need too. */
  readonly #turns = new Turns(budgetMs);
  readonly #unread: UnreadInput;

  constructor(private readonly options: SshDoorOptions) {
    this.#limits = { ...usualDoorLimits, ...options.limits };
    this.#failures = new MinuteCounts(this.#limits.failuresOfNetwork);
    this.#unfinished = new MinuteCounts(this.#limits.failuresOfNetwork * unfinishedPerFailure);
    this.#unread = new UnreadInput({ all: this.#limits.untakenBytes, ofUser: this.#limits.untakenBytesOfUser });
    this.#server = createServer({ noDelay: true }, (socket) => this.#receive(socket));
    const pings = { keepaliveInterval: this.#limits.aliveIntervalMs, keepaliveCountMax: unansweredPings };
    const config: ServerConfig = { hostKeys: [options.hostKey], algorithms, ident: 'Atoll', ...pings };
    this.#ssh = new ssh2.Server(config, (client, info) => this.#begin(client, info));
  }

  /** Where it listens; null while another process has the port. */
  get port(): number | null {
    return this.#server.listening ? (this.#server.address() as AddressInfo).port : null;
  }

  /** Resolves when the port is claimed, which may be long after the call. */
  async open(): Promise<void> {
    let wasTold = false;
    while (!this.#closed.signal.aborted) {
      const taken = await this.#listen();
      if (!taken) return this.#logger.log({ message: 'SSH door is open', port: this.port });
      if (!wasTold)
        this.#logger.log({ message: 'Another process has the SSH port; waiting for it', port: this.options.port });
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
    socket.setKeepAlive(true, keepAliveMs);
    const network = networkOf(address);
    if (this.#failures.areTooMany(network) || this.#unfinished.areTooMany(network))
      return refuse(socket, disconnection.noMoreMethods, tooManyFailures);
    this.#makeRoomFor(network);
    const who = (): string => tcp.ssh?.admission?.userId ?? network;
    const paced = new PacedSocket(socket, this.#turns, who, { mayRead: () => tcp.ssh?.takesInput() ?? true });
    const tcp: TcpConnection = { socket, paced, address, network, ssh: null, identificationBytes: 0 };
    const name = nameOf(address, socket.remotePort);
    this.#connections.set(name, tcp);
    const grace = setTimeout(() => !tcp.ssh?.admission && socket.destroy(), this.#limits.logInGraceMs);
    socket.once('close', () => {
      clearTimeout(grace);
      this.#connections.delete(name);
      tcp.ssh?.leave();
      void this.#count(tcp);
    });
    // A stream in place of the socket is what the method is for; its type does not say so.
    this.#ssh.injectSocket(paced as unknown as Socket);
  }

  /** A connection that has ended, once it is decided about its log-in. */
  async #count({ ssh, socket, network, identificationBytes }: TcpConnection): Promise<void> {
    await ssh?.decided;
    if (!ssh?.isUnproven) return;
    if (ssh.hasFailed) this.#failures.add(network);
    // Whoever only looks whether an SSH server is there, as load balancers do, says who it is at most.
    if (socket.bytesRead > identificationBytes) this.#unfinished.add(network);
  }

  /** Once a client has said that it speaks SSH. */
  #begin(client: Connection, { ip, port, header }: ClientInfo): void {
    const tcp = this.#connections.get(nameOf(ip, port));
    if (!tcp) return void client.end();
    const { socket, paced, address } = tcp;
    const { registry } = this.options;
    tcp.identificationBytes = header.identRaw.length + '\r\n'.length;
    const ssh = (tcp.ssh = new SshConnection(client, {
      socket: paced,
      unread: this.#unread,
      admissionControl: this.options.admissionControl,
      limits: this.#limits,
      refusalOf: (admission) => registry.refusalOf(admission),
    }));
    client.once('ready', () => {
      // Not `once` of node:events, which rejects when the connection is reset.
      const left = new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
      if (ssh.isAdmitted()) void registry.register(ssh, address, left);
    });
  }

  /**
   * Where too many have not logged in, one of them goes: of the newcomer's own network where that has too many, else of
   * the network that has most, so that a few networks lock nobody out. Those that say nothing go first, then the
   * oldest, so that whoever logs in at this moment does.
   */
  #makeRoomFor(network: string): void {
    const unauthenticated = [...this.#connections.values()].filter(
      ({ ssh, socket }) => !ssh?.admission && !socket.destroyed,
    );
    const byNetwork = Map.groupBy(unauthenticated, ({ network: each }) => each);
    const own = byNetwork.get(network) ?? [];
    if (own.length >= this.#limits.startupsOfNetwork) return cutOneOf(own);
    if (unauthenticated.length < this.#limits.startups) return;
    cutOneOf([...byNetwork.values()].reduce((most, each) => (each.length > most.length ? each : most), []));
  }

  /** Lets the port go at once, so that another replica takes it, and ends what is open. */
  async close(): Promise<void> {
    this.#closed.abort();
    const closed = this.#server.listening ? once(this.#server, 'close') : Promise.resolve();
    this.#server.close();
    for (const { socket, ssh } of this.#connections.values()) {
      if (ssh) ssh.end('The platform restarts here. Log in again.');
      else socket.destroy();
    }
    const cut = setTimeout(() => [...this.#connections.values()].forEach(({ socket }) => socket.destroy()), closingMs);
    await closed;
    clearTimeout(cut);
  }
}

/** Connections of a network that end unfinished, for each failed one that it may have. */
const unfinishedPerFailure = 4;

const tooManyFailures = 'Too many log-ins from your network have failed. Try again in a minute.';

/** In the order in which they came. */
const cutOneOf = (unauthenticated: readonly TcpConnection[]): void =>
  void (unauthenticated.find(({ ssh }) => !ssh) ?? unauthenticated[0])?.socket.destroy();

const nameOf = (address: string, port: number | undefined): string => `${address} ${port}`;
