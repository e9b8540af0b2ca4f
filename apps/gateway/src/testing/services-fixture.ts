import { type CallContext, type Operation } from '@atoll/contracts';
import { credentials, credentialsChanged, type Credential } from '@atoll/contracts/teams';
import { createApiKey, digestApiKey } from '@atoll/api-keys';
import { AppError, isAppError } from '@atoll/errors';
import { Json, type InProcessBus } from '@atoll/rpc';

export const pepper = 'a pepper for specs';

export interface Call {
  subject: string;
  input: unknown;
  context: CallContext;
}

type Answer<I, O> = (input: I, context: CallContext) => O | Json<O> | Promise<O | Json<O>>;

/** The services behind the gateway, as a spec wants them to be: what keys open, and what operations answer. */
export class FakeServices {
  /** Every call the gateway made, look-ups of keys included. */
  readonly calls: Call[] = [];
  readonly #credentials = new Map<string, Credential>();
  readonly #stops = new Map<string, () => void>();

  constructor(private readonly bus: InProcessBus) {
    this.answer(credentials.verify, ({ digest }) => {
      const credential = this.#credentials.get(digest);
      if (!credential) throw new AppError('unauthenticated', 'No such key.');
      return credential;
    });
  }

  /** Makes an operation answer; the last one given holds. */
  answer<I extends object, O extends object>(operation: Operation<I, O>, answer: Answer<I, O>): void {
    this.stop(operation);
    const serve = async (payload: string, context: CallContext) => {
      const input = JSON.parse(payload) as I;
      this.calls.push({ subject: operation.subject, input, context });
      try {
        const answered = await answer(input, context);
        return { json: answered instanceof Json ? answered.parts : JSON.stringify(answered) };
      } catch (error) {
        return { error: isAppError(error) ? error : new AppError('internal', 'The fake failed.') };
      }
    };
    const stop = this.bus.serve(
      operation.subject,
      ({ payload, context }, respond) => void serve(payload, context).then(respond),
    );
    this.#stops.set(operation.subject, stop);
  }

  /** Nobody answers the operation any more. */
  stop(operation: Pick<Operation, 'subject'>): void {
    this.#stops.get(operation.subject)?.();
    this.#stops.delete(operation.subject);
  }

  /** A new key that opens what is given; of a user as a whole unless told otherwise. */
  key(credential: Partial<Credential> = {}): string {
    const key = createApiKey();
    this.set(key, credential);
    return key;
  }

  /** Changes what a key opens; without a broadcast. */
  set(key: string, credential: Partial<Credential>): void {
    this.#credentials.set(digestApiKey(key, pepper), {
      key_id: '01890000-0000-7000-8000-00000000000a',
      user_id: '01890000-0000-7000-8000-00000000000b',
      scope: 'user',
      platform_admin: false,
      timezone: 'UTC',
      teams: [],
      expiry_date: null,
      ip_whitelist: '',
      ...credential,
    });
  }

  revoke(key: string): void {
    this.#credentials.delete(digestApiKey(key, pepper));
  }

  broadcastChange(userId: string): void {
    this.bus.publish(credentialsChanged.name, JSON.stringify({ user_id: userId }));
  }

  callsOf(operation: Pick<Operation, 'subject'>): Call[] {
    return this.calls.filter(({ subject }) => subject === operation.subject);
  }

  /** The context of the last call of an operation. */
  contextOf(operation: Pick<Operation, 'subject'>): CallContext {
    const call = this.callsOf(operation).at(-1);
    if (!call) throw new Error(`${operation.subject} was not called.`);
    return call.context;
  }
}
