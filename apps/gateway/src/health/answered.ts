import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { Counter, Histogram } from 'prom-client';
import { GatewaySettings } from '../gateway-options.js';
import { clientAddress } from '../http/client-address.js';
import { loggablePath } from '../http/path.js';

const probes: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics']);

interface Ended {
  readonly isWhole: boolean;
  readonly tookMs: number;
}

/** What is kept of each request once its response is over: a figure and a line. Never headers, query or body. */
@Injectable()
export class Answered {
  readonly #durations: Histogram;
  readonly #observers = new Map<string, Pick<Histogram.Internal<string>, 'observe'>>();

  readonly #unread: Counter;
  readonly #log: Logger;

  constructor(settings: GatewaySettings) {
    // Its fields are known and hold no secret; looking through them for one, line by line, would cost more than all the
    // rest of the line.
    this.#log = settings.logger.child({}, { redact: [] });
    this.#durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer, or of its connection; status none where no answer began.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [settings.metrics],
    });
    this.#unread = new Counter({
      name: 'http_unread_requests_total',
      help: 'What was refused before it could be read as a request.',
      labelNames: ['status'],
      registers: [settings.metrics],
    });
  }

  /** What was refused before it was a request: no HTTP, too large a head, too slow, too many on one connection. */
  recordUnread(status: number, requestId: string, peer: string | undefined): void {
    this.#unread.inc({ status: String(status) });
    // Who is behind a proxy stands in what was not read.
    const address = clientAddress(peer, undefined, []);
    this.#log.info({ status, request_id: requestId, address }, 'request rejected before it was read');
  }

  /** Of a response that is over: whole, or aborted by the end of its connection. One that never began has no status. */
  record(request: FastifyRequest, { raw, statusCode }: FastifyReply, { isWhole, tookMs }: Ended): void {
    const { method, caller } = request;
    const status = raw.headersSent ? statusCode : undefined;
    const route = request.routeOptions.url ?? 'none';
    this.#observer(method, route, status ?? 'none').observe(tookMs / 1000);
    // Probes that find all well come every few seconds, for ever.
    const level = probes.has(route) && status === 200 && isWhole ? 'debug' : 'info';
    this.#log[level](
      {
        method,
        route,
        path: loggablePath(request),
        status,
        duration_ms: Math.round(tookMs * 100) / 100,
        request_id: request.id,
        address: request.address,
        ...(!isWhole && { aborted: true }),
        ...(caller && { user_id: caller.userId, [`${caller.credential.kind}_id`]: caller.credential.id }),
      },
      isWhole ? 'answered' : 'connection ended before the response was sent',
    );
  }

  #observer(method: string, route: string, status: number | 'none'): Pick<Histogram.Internal<string>, 'observe'> {
    const name = `${method} ${route} ${status}`;
    let observer = this.#observers.get(name);
    if (!observer)
      this.#observers.set(name, (observer = this.#durations.labels({ method, route, status: String(status) })));
    return observer;
  }
}
