import type { OnApplicationShutdown } from '@nestjs/common';
import { InvalidArgumentError, type Msg, type NatsConnection } from '@nats-io/transport-node';
import type { BroadcastType, CallContext, Operation } from '@atoll/contracts';
import { AppError, isAppError } from '@atoll/errors';
import { after, ThrottledLog } from '@atoll/waiting';
import { remainingMs, systemContext } from './call-context.js';
import { endOfTurn } from './end-of-turn.js';
import { open, seal, subjectOf, type Sealed } from './nats-envelope.js';
import { newInbox } from './nats-inbox.js';
import type { LinkSubscription, NatsLink } from './nats-link.js';
import { ReplyAssembly } from './nats-reply.js';
import { RpcClient } from './rpc-client.js';
import type { Readiness } from './rpc.js';
import type { Answer } from './rpc-server.js';
import type { Signer } from './signature.js';
import { deadlineExceeded, unavailable, unreadableAnswer } from './wire.js';

interface PendingCall {
  operation: Operation;
  assembly: ReplyAssembly;
  settle: (answer: Answer) => void;
}

interface OutgoingRequest {
  service: string;
  subject: string;
  reply: string;
  sealed: Sealed;
  payload: string;
  context: CallContext;
}

/** Calls that wait at once; beyond it, as when NATS is frozen, more would only fill the memory. */
const maxPendingCalls = 10_000;
/** Clocks of hosts may differ by as much before broadcasts are lost between them. */
const broadcastLifeMs = 60_000;
/** Status of the server for a subject without subscribers. */
const noResponders = 503;

/** Calls over NATS. One inbox subscription takes the answers of all calls, since an answer may come in parts. */
export class NatsRpc extends RpcClient implements OnApplicationShutdown {
  readonly #pending = new Map<string, PendingCall>();
  readonly #inbox: string;
  readonly #replies: LinkSubscription;
  readonly #forgetDown: () => void;
  readonly #refused = new ThrottledLog((line) => this.logger.error(line));
  #calls = 0;

  /** `onNobody`: called when a service has no responders: it may be down, or have another secret. */
  constructor(
    private readonly link: NatsLink,
    private readonly signer: Signer,
    private readonly onNobody?: () => void,
  ) {
    super();
    this.#inbox = newInbox(link.name);
    this.#replies = link.subscribe(`${this.#inbox}.*.*`, undefined, (message) => this.#receive(message));
    this.#forgetDown = link.onDown(() => this.#abandon());
  }

  protected override broadcast(name: string, json: string): void {
    const subject = broadcastSubject(name);
    const context = systemContext('broadcast', { deadlineMs: broadcastLifeMs });
    this.link.connection?.publish(subject, json, { headers: seal(this.signer, subject, '', context, json).headers });
  }

  override listen<Payload extends object>(
    type: BroadcastType<Payload>,
    listener: (payload: Payload) => void,
  ): () => void {
    const subscription = this.link.subscribe(broadcastSubject(type.name), undefined, (message) => {
      const opened = open(this.signer, message);
      if (!opened) return this.#logUnsigned(type.name);
      if (remainingMs(opened.context) > 0) this.deliver(type, listener, () => opened.payload);
    });
    return () => void subscription.drain();
  }

  override status(): Readiness {
    const status = this.link.status();
    if (!status.ready || this.#replies.isLive()) return status;
    return { ready: false, reason: 'the inbox for answers is not subscribed' };
  }

  async onApplicationShutdown(): Promise<void> {
    this.#forgetDown();
    await this.#replies.drain();
    this.#abandon();
  }

  protected override request(operation: Operation, payload: string, context: CallContext): Promise<Answer> {
    const { connection } = this.link;
    if (!connection || this.#pending.size >= maxPendingCalls)
      return Promise.resolve({ error: unavailable(operation.service) });
    this.#calls += 1;
    const token = this.#calls.toString(36);
    const subject = subjectOf(operation, this.signer.fingerprints[0]);
    const reply = `${this.#inbox}.${operation.service}.${token}`;
    const sealed = seal(this.signer, subject, reply, context, payload);
    const assembly = new ReplyAssembly(this.signer, operation.service, sealed.signature);
    return new Promise((resolve) => {
      const settle = (answer: Answer): void => {
        clearTimeout(timer);
        this.#pending.delete(token);
        resolve(answer);
      };
      const timer = after(remainingMs(context), () => settle({ error: deadlineExceeded() }));
      this.#pending.set(token, { operation, assembly, settle });
      const request = { service: operation.service, subject, reply, sealed, payload, context };
      void this.#send(connection, request).then((error) => error && settle({ error }));
    });
  }

  /** Publishes a request; returns why it could not. */
  async #send(connection: NatsConnection, request: OutgoingRequest): Promise<AppError | undefined> {
    const { service, subject, reply, sealed, payload, context } = request;
    await endOfTurn();
    if (!this.#pending.has(tokenOf(reply))) return undefined;
    try {
      connection.publish(subject, payload, { reply, headers: sealed.headers });
      return undefined;
    } catch (error) {
      this.logger.warn({ message: `${subject} could not be called: ${String(error)}`, request_id: context.requestId });
      if (error instanceof InvalidArgumentError)
        return new AppError('payload_too_large', 'The request is larger than the message bus accepts.');
      return unavailable(service);
    }
  }

  #receive(message: Msg): void {
    const call = this.#pending.get(tokenOf(message.subject));
    if (!call) return;
    const { operation, assembly, settle } = call;
    if (message.headers?.code === noResponders) {
      settle({ error: unavailable(operation.service) });
      this.onNobody?.();
      return;
    }
    try {
      const answer = assembly.add(message);
      if (answer === 'refused') this.#logRefused(operation);
      else if (answer !== 'incomplete') settle(answer);
    } catch (error) {
      settle({ error: isAppError(error) ? error : unreadableAnswer() });
    }
  }

  /** The call keeps waiting for the genuine response, so a forged one cannot make it fail. */
  #logRefused({ subject, service }: Operation): void {
    this.#refused.log(service, {
      message: `An answer to ${subject} was ignored: ${service} did not sign it for this request with an ATOLL_BUS_SECRET of this process.`,
    });
  }

  #logUnsigned(broadcast: string): void {
    this.#refused.log(broadcast, {
      message: `A broadcast of ${broadcast} was ignored: no ATOLL_BUS_SECRET of this process signed it.`,
    });
  }

  /** The connection is gone and with it every answer under way: nobody waits for its deadline in vain. */
  #abandon(): void {
    for (const { operation, settle } of [...this.#pending.values()]) settle({ error: unavailable(operation.service) });
  }
}

function tokenOf(inbox: string): string {
  return inbox.slice(inbox.lastIndexOf('.') + 1);
}

function broadcastSubject(name: string): string {
  return `broadcast.${name}`;
}
