import type { MessageHandler } from '@nestjs/microservices';
import type { Msg } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { AppError, isAppError } from '@atoll/errors';
import { remainingMs } from './call-context.js';
import { open, type Opened } from './nats-envelope.js';
import { NatsLink, type LinkSubscription } from './nats-link.js';
import { errorHeaders, sendReply } from './nats-reply.js';
import { RpcServer, type Answer, type RpcServerOptions } from './rpc-server.js';
import type { Readiness } from './rpc.js';
import { SeenSignatures, Signer, type Secrets } from './signature.js';

export type NatsStrategyOptions = RpcServerOptions & { secret: Secrets } & ({ link: NatsLink } | { servers: string | string[] });

/** Serves the operations of a service over NATS. Replicas share the work by their queue group, the service's name. */
export class NatsStrategy extends RpcServer {
  readonly #link: NatsLink;
  readonly #ownsLink: boolean;
  readonly #signer: Signer;
  readonly #seen = new SeenSignatures();
  #subscriptions: LinkSubscription[] = [];
  #listening = false;

  constructor(options: NatsStrategyOptions) {
    super(options);
    this.#signer = new Signer(options.secret);
    this.#ownsLink = !('link' in options);
    this.#link = 'link' in options ? options.link : NatsLink.open({ servers: options.servers, name: options.service });
  }

  /** Resolves when every operation is subscribed, or after the link's patience with a NATS that is away: then it happens in the background. */
  listen(callback: (error?: unknown) => void): void {
    this.#subscriptions = [...this.messageHandlers].map(([subject, handler]) =>
      this.#link.subscribe(subject, this.options.service, (message) => this.#receive(handler, message)),
    );
    this.#listening = true;
    void this.#link
      .settled()
      .then(() => this.#link.flush())
      .then(() => callback(), callback);
  }

  override readiness(): Readiness {
    if (!this.#listening) return { ready: false, reason: 'the service takes no requests' };
    const status = this.#link.status();
    const missing = this.#subscriptions.filter((subscription) => !subscription.isLive()).length;
    if (!status.ready || missing === 0) return status;
    return { ready: false, reason: `${missing} of ${this.#subscriptions.length} operations are not subscribed` };
  }

  protected override async finish(): Promise<void> {
    this.#listening = false;
    await Promise.all(this.#subscriptions.map((subscription) => subscription.drain()));
    await this.idle();
    await this.#link.flush();
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#ownsLink) await this.#link.close();
  }

  #receive(handler: MessageHandler, message: Msg): void {
    const { reply, subject } = message;
    if (!reply) return;
    const request = this.#open(message);
    if (!request) return;
    if (this.#seen.add(request.signature, request.context.deadlineAtMs)) {
      void this.serve(handler, request, (answer) => this.#respond(reply, request.context, answer));
    } else {
      // Not told: the inbox is that of whoever made the request first, and it waits for its answer.
      this.logger.warn({ message: `A copy of a request for ${subject} was refused.`, request_id: request.context.requestId });
    }
  }

  #open(message: Msg): Opened | undefined {
    try {
      return open(this.#signer, message);
    } catch (error) {
      const refusal = isAppError(error) ? error : new AppError('internal', 'The request could not be read.');
      this.logger.warn(`A request for ${message.subject} was refused: ${refusal.message}`);
      // A stranger may name any subject, and ones of JetStream act on whatever reaches them: only an inbox is answered.
      if (message.reply?.startsWith(`${this.#link.inboxPrefix ?? '_INBOX'}.`)) {
        message.respond(JSON.stringify(refusal.toWire()), { headers: errorHeaders });
      }
      return undefined;
    }
  }

  /** After the deadline, or without a connection, there is nobody to send the answer to. */
  async #respond(reply: string, context: CallContext, answer: Answer): Promise<void> {
    const { connection } = this.#link;
    if (connection && remainingMs(context) > 0) await sendReply(connection, reply, answer, context);
  }
}
