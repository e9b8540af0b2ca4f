import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { isIP, type AddressInfo, type Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { terminalProtocol } from '@atoll/contracts/pods';
import { Turns } from '@atoll/waiting';
import { WebSocketServer } from 'ws';
import type { Admission } from '../log-ins/admission-control.js';
import type { ConnectionRegistry } from '../log-ins/connection-registry.js';
import { PacedSocket } from '../ssh-door/paced-streams.js';
import type { Place, TerminalTickets } from './terminal-tickets.js';
import { TerminalConnection } from './terminal-connection.js';

const frameBytes = 64 * 1024;
/** Of a browser, read in one turn: it may be frames of 6 bytes each, and a frame costs more than its bytes. */
const readBytes = 1024;
/** Of a turn of the event loop, for what all browsers send. */
const budgetMs = 2;
const closingMs = 3_000;
const headMs = 5_000;
const path = /^\/([a-z0-9-]{1,63})$/;
const wildcards: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

export interface TerminalDoorOptions {
  /** The address on which it listens, at any port. A wildcard is named by the name of this host. */
  readonly host: string;
  readonly tickets: TerminalTickets;
  readonly registry: ConnectionRegistry;
  /** Asked anew for each ticket that is used: what was allowed when it was made may not be any more. */
  readonly isStillAdmitted: (admission: Admission) => Promise<boolean>;
}

/**
 * Where gateways hand over the WebSockets of terminals: a listener for them alone. Who comes with a ticket of this
 * replica gets its terminal; everything else is cut off.
 */
export class TerminalDoor {
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: frameBytes,
    perMessageDeflate: false,
    handleProtocols: () => terminalProtocol,
  });
  readonly #terminals = new Set<TerminalConnection>();
  readonly #connections = new Set<Duplex>();
  readonly #turns = new Turns(budgetMs);

  constructor(private readonly options: TerminalDoorOptions) {
    this.#server = createServer({ headersTimeout: headMs, requestTimeout: headMs, keepAliveTimeout: 1 }, (request) =>
      request.destroy(),
    );
    this.#server.on('connection', (socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    this.#server.on('upgrade', (request, socket, head) => this.#receive(request, socket, head));
  }

  /** By which gateways reach it. */
  get place(): Place {
    const { port } = this.#server.address() as AddressInfo;
    const { host } = this.options;
    return { host: wildcards.has(host) ? hostname() : host, port };
  }

  async open(): Promise<void> {
    this.#server.listen(0, this.options.host);
    await once(this.#server, 'listening');
  }

  #receive(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const [, podName = ''] = path.exec(request.url ?? '') ?? [];
    const ticket = ticketIn(request);
    const asked = ticket === undefined ? null : this.options.tickets.redeem(ticket, podName);
    if (!asked) return void socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    const { registry } = this.options;
    const paced = new PacedSocket(socket as Socket, this.#turns, () => asked.admission.userId, { readBytes });
    this.#sockets.handleUpgrade(request, paced, head, (webSocket) => {
      const terminal = new TerminalConnection(webSocket, asked, this.options.isStillAdmitted);
      this.#terminals.add(terminal);
      const served = terminal.serve().finally(() => this.#terminals.delete(terminal));
      const refusal = registry.refusalOf(asked.admission);
      if (refusal) terminal.end(refusal);
      else void registry.register(terminal, addressIn(request), served);
    });
  }

  /** Ends what is open, each with a word. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const terminal of this.#terminals) terminal.restart();
    const cut = setTimeout(() => this.#connections.forEach((socket) => socket.destroy()), closingMs);
    await closed;
    clearTimeout(cut);
  }
}

/** The one beside the protocol itself. */
function ticketIn({ headers }: IncomingMessage): string | undefined {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return offered.includes(terminalProtocol) ? offered.find((name) => name !== terminalProtocol) : undefined;
}

/** The client's, as its gateway saw it. */
function addressIn({ headers }: IncomingMessage): string {
  const address = headers['x-forwarded-for'];
  return typeof address === 'string' && isIP(address) > 0 ? address : '';
}
