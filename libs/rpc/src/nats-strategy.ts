import type { MessageHandler } from '@nestjs/microservices';
import { ThrottledLog } from '@atoll/waiting';
import type { Msg } from '@nats-io/transport-node';
import { remainingMs } from './call-context.js';
import { open, subjectOf } from './nats-envelope.js';
import { isInbox } from './nats-inbox.js';
import type { LinkSubscription, NatsLink } from './nats-link.js';
import { ReplySender, type Asked } from './nats-reply.js';
import { RpcServer, type Answer, type RpcServerOptions } from './rpc-server.js';
import type { Readiness } from './rpc.js';
import { SeenSignatures, Signer, type Secrets } from './signature.js';

export type NatsStrategyOptions = RpcServerOptions & { secret: Secrets; link: NatsLink };

/** Serves the operations of a service over NATS. Replicas share the work by their queue group, the service's name. */
export class NatsStrategy extends RpcServer {
  readonly #link: NatsLink;
  readonly #signer: Signer;
  readonly #replies: ReplySender;
  readonly #seen = new SeenSignatures();
  readonly #unsigned = new ThrottledLog((line) => this.logger.error(line));
  readonly #refused = new ThrottledLog((line) => this.logger.warn(line));
  /** By operation: on each of its subjects. */
  #subscriptions: LinkSubscription[][] = [];
  #listening = false;

  constructor(options: NatsStrategyOptions) {
    super(options);
    this.#signer = new Signer(options.secret);
    this.#replies = new ReplySender(options.service, this.#signer);
    this.#link = options.link;
  }

  /**
   * Resolves when every operation is subscribed, or after the link's patience with a NATS that is away: then it happens
   * in the background.
   */
  listen(callback: (error?: unknown) => void): void {
    this.#subscriptions = [...this.messageHandlers].map(([subject, handler]) =>
      // One for each secret: a replica with another one is in no queue group with this one, and takes none of its
      // requests.
      this.#signer.fingerprints.map((fingerprint) =>
        this.#link.subscribe(subjectOf({ subject }, fingerprint), this.options.service, (message) =>
          this.#receive(subject, handler, message),
        ),
      ),
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
    const missing = this.#subscriptions.filter((each) => !each.every((subscription) => subscription.isLive())).length;
    if (!status.ready || missing === 0) return status;
    return { ready: false, reason: `${missing} of ${this.#subscriptions.length} operations are not subscribed` };
  }

  protected override async finish(): Promise<void> {
    this.#listening = false;
    await Promise.all(this.#subscriptions.flat().map((subscription) => subscription.drain()));
    await this.idle();
    await this.#link.flush();
  }

  /**
   * Refused messages get no response: the inbox belongs to the original caller, and a refusal could not be bound to its
   * request.
   */
  #receive(subject: string, handler: MessageHandler, message: Msg): void {
    const { reply: inbox } = message;
    if (!inbox || !isInbox(inbox)) return;
    const request = open(this.#signer, message);
    if (!request) {
      this.#unsigned.log('', {
        message: `A request for ${subject} was ignored: no ATOLL_BUS_SECRET of this process signed it.`,
      });
      return;
    }
    const { context, signature } = request;
    const refuse = (kind: string, reason: string): void =>
      this.#refused.log(kind, {
        message: `A request for ${subject} was ignored: ${reason}.`,
        request_id: context.requestId,
      });
    if (remainingMs(context) === 0) {
      refuse('late', 'it came after its deadline by the clock of this host');
    } else if (!this.#seen.add(signature, context.deadlineAtMs)) {
      refuse('copy', 'it is a copy of one that came before');
    } else {
      void this.serve(handler, { ...request, nonce: signature }, (answer) =>
        answer
          ? this.#respond({ inbox, signature, context }, answer)
          : refuse('handled', 'another replica handled the original'),
      );
    }
  }

  /** After the deadline, or without a connection, there is nobody to send the answer to. */
  async #respond(asked: Asked, answer: Answer): Promise<void> {
    const { connection } = this.#link;
    if (connection && remainingMs(asked.context) > 0) await this.#replies.send(connection, asked, answer);
  }
}
