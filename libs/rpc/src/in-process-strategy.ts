import type { AppError } from '@atoll/errors';
import type { InProcessBus } from './in-process-bus.js';
import { byteLengthOf } from './json.js';
import { RpcServer, type Answer, type RpcServerOptions } from './rpc-server.js';
import type { Readiness } from './rpc.js';
import { answerTooLarge } from './wire.js';

export type InProcessStrategyOptions = RpcServerOptions & { bus: InProcessBus };

/** Serves the operations of a service to the other services of the same process. */
export class InProcessStrategy extends RpcServer {
  readonly #bus: InProcessBus;
  #stops: (() => void)[] = [];
  #listening = false;

  constructor(options: InProcessStrategyOptions) {
    super(options);
    this.#bus = options.bus;
  }

  listen(callback: (error?: unknown) => void): void {
    try {
      for (const [subject, handler] of this.messageHandlers) {
        this.#stops.push(
          this.#bus.serve(
            subject,
            (request, respond) => void this.serve(handler, request, (answer) => answer && respond(sized(answer))),
          ),
        );
      }
      this.#listening = true;
      callback();
    } catch (error) {
      callback(error);
    }
  }

  override readiness(): Readiness {
    return this.#listening ? { ready: true } : { ready: false, reason: 'the service takes no requests' };
  }

  protected override finish(): Promise<void> {
    this.#listening = false;
    this.#stops.splice(0).forEach((stop) => stop());
    return this.idle();
  }
}

/** The limit of NATS holds here too, so that a service finds out on one machine. */
function sized(answer: Answer): Answer {
  const error: AppError | undefined = answer.json === undefined ? undefined : answerTooLarge(byteLengthOf(answer.json));
  return error ? { error } : answer;
}
