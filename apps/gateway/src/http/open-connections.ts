import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { addressInRanges, networkOf, type AddressRange } from '@atoll/contracts';
import { ThrottledLog } from '@atoll/waiting';
import { GatewaySettings } from '../gateway-options.js';
import { clientAddress } from './client-address.js';

/** How many connections may be open at once. */
export class ConnectionLimits {
  /** Of one network (`networkOf`), trusted proxies in it not counted: each of those may have any number. */
  ofNetwork = 512;
  /** Of all, on all listeners. */
  ofAll = 8_000;
}

interface Connection {
  readonly socket: Duplex;
  readonly network: Network;
  /** Requests that wait for their answers; a connection that left HTTP counts as one that always does. */
  requests: number;
}

interface Network {
  readonly name: string;
  readonly isProxy: boolean;
  open: number;
  /** Connections on which no request waits for its answer, the one that has been so for longest first. */
  readonly idle: Set<Connection>;
  /** The others, the one on which requests have waited for longest first. */
  readonly busy: Set<Connection>;
}

/**
 * Bounds the open connections of each network, and of all. A connection that has not yet sent the whole head of a
 * request is idle.
 *
 * Where a network has too many, it loses the longest idle one. Where all are too many, a network loses one that has at
 * least as many as the newcomer's, and as networks have on average: the longest idle one or, where none is idle, the
 * longest busy one, if the network has at least as many as the newcomer's even then. Proxies lose only idle ones, and
 * only while they have more than half of all. Where none can go, the newcomer is closed.
 */
@Injectable()
export class OpenConnections {
  readonly #callers = new Map<string, Network>();
  readonly #proxies = new Map<string, Network>();
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #log: ThrottledLog;
  #open = 0;

  constructor(
    private readonly settings: GatewaySettings,
    private readonly limits: ConnectionLimits,
  ) {
    this.#log = new ThrottledLog(({ message }) => settings.logger.warn(message));
  }

  get trustedProxies(): readonly AddressRange[] {
    return this.settings.trustedProxies;
  }

  /** Closes a new connection for which there is no room. */
  add(socket: Socket): void {
    const network = this.#networkOf(clientAddress(socket.remoteAddress, undefined, []));
    if (!this.#makeRoomFor(network)) return void socket.destroy();
    const connection: Connection = { socket, network, requests: 0 };
    this.#connections.set(socket, connection);
    this.#alike(network).set(network.name, network);
    network.open += 1;
    network.idle.add(connection);
    this.#open += 1;
    socket.once('close', () => this.#remove(connection));
  }

  /** A request of a connection came, or its response is over. */
  count(socket: Duplex, more: 1 | -1): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.requests += more;
    const { idle, busy } = connection.network;
    const [from, to] = connection.requests === 0 ? [busy, idle] : [idle, busy];
    from.delete(connection);
    to.add(connection);
  }

  #networkOf(address: string): Network {
    const isProxy = addressInRanges(address, this.trustedProxies);
    // In IPv6 a proxy often lies in one network with others.
    const name = isProxy ? address : networkOf(address);
    const none = { name, isProxy, open: 0, idle: new Set<Connection>(), busy: new Set<Connection>() };
    return this.#alike(none).get(name) ?? none;
  }

  #alike({ isProxy }: Network): Map<string, Network> {
    return isProxy ? this.#proxies : this.#callers;
  }

  #makeRoomFor(network: Network): boolean {
    const { ofNetwork, ofAll } = this.limits;
    if (!network.isProxy && this.settings.limits && network.open >= ofNetwork) {
      this.#log.log('network', {
        message: `An address has ${ofNetwork} connections open. Each further one takes the place of its longest idle one, or is closed. Last such address: ${network.name}. If a proxy has it, add it to TRUSTED_PROXIES`,
      });
      return this.#cutFirst(network.idle);
    }
    if (this.#open < ofAll) return true;
    this.#log.log('all', {
      message: `${ofAll} connections are open. Each further one takes the place of one of the addresses that have most, an idle one first, or is closed`,
    });
    return this.#cutForOneOf(network);
  }

  #cutForOneOf(newcomer: Network): boolean {
    const ofProxies = [...this.#proxies.values()].reduce((sum, { open }) => sum + open, 0);
    if (ofProxies > this.limits.ofAll / 2 && this.#cutFirst(largest(this.#proxies, hasIdle)?.idle)) return true;
    const own = newcomer.isProxy ? 0 : newcomer.open;
    const least = Math.max(own, (this.#open - ofProxies) / this.#callers.size);
    if (this.#cutFirst(largest(this.#callers, (each) => each.open >= least && hasIdle(each))?.idle)) return true;
    return this.#cutFirst(largest(this.#callers, ({ open }) => open > own + 1)?.busy);
  }

  #cutFirst(connections: ReadonlySet<Connection> = new Set()): boolean {
    const [first] = connections;
    if (!first) return false;
    this.#remove(first);
    first.socket.destroy();
    return true;
  }

  #remove(connection: Connection): void {
    const { socket, network } = connection;
    if (!this.#connections.delete(socket)) return;
    network.idle.delete(connection);
    network.busy.delete(connection);
    network.open -= 1;
    this.#open -= 1;
    if (network.open === 0) this.#alike(network).delete(network.name);
  }
}

const hasIdle = ({ idle }: Network): boolean => idle.size > 0;

function largest(networks: Map<string, Network>, fits: (network: Network) => boolean): Network | undefined {
  let found: Network | undefined;
  for (const network of networks.values()) if (network.open > (found?.open ?? 0) && fits(network)) found = network;
  return found;
}

/** Bounds the connections of `server`, together with those of other listeners. */
export function boundConnections(server: Server, connections: () => OpenConnections): void {
  server.prependListener('connection', (socket: Socket) => connections().add(socket));
  server.prependListener('request', ({ socket }, response) => {
    connections().count(socket, 1);
    response.once('close', () => connections().count(socket, -1));
  });
  const left = (_request: unknown, socket: Duplex): void => connections().count(socket, 1);
  server.on('upgrade', left).on('connect', left);
}
