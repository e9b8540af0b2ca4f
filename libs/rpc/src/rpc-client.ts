import { Logger } from '@nestjs/common';
import { unknownFieldCode, validateWire, type BroadcastType, type CallContext, type Operation } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { ThrottledLog } from '@atoll/waiting';
import { remainingMs } from './call-context.js';
import { textOf, type JsonText } from './json.js';
import { Rpc } from './rpc.js';
import type { Answer } from './rpc-server.js';
import { deadlineExceeded, encode, internalMessage, maxRequestBytes, olderRelease, unreadableAnswer } from './wire.js';

/** The asking half of the bus, which does not depend on what carries it: JSON, its limits, the deadline, errors. */
export abstract class RpcClient extends Rpc {
  protected readonly logger = new Logger(Rpc.name);
  readonly #olderServices = new ThrottledLog((line) => this.logger.warn(line));

  override async call<Input extends object, Output extends object>(
    operation: Operation<Input, Output>,
    input: Input,
    context: CallContext,
  ): Promise<Output> {
    return this.#decode(operation, await this.#ask(operation, input, context), context) as Output;
  }

  override async callForJson<Input extends object>(
    operation: Operation<Input>,
    input: Input,
    context: CallContext,
  ): Promise<JsonText> {
    const json = await this.#ask(operation, input, context);
    if (!isObject(json)) throw this.#unreadable(operation, context);
    return json;
  }

  async #ask(operation: Operation, input: object, context: CallContext): Promise<JsonText> {
    const payload = this.#encode(operation, input, context);
    if (remainingMs(context) === 0) throw deadlineExceeded();
    const answer = await this.request(operation, payload, context);
    if (answer.error) throw this.#olderRelease(operation, answer.error, context) ?? answer.error;
    return answer.json;
  }

  /**
   * The error where the service does not know a field that its own contract has in this release. What users send was
   * checked before, by the same contract: they are not at fault, and have not sent the field themselves.
   */
  #olderRelease(
    { service, subject }: Operation,
    { code, details }: AppError,
    { requestId }: CallContext,
  ): AppError | undefined {
    const field = code === 'invalid_input' && details.errors?.find((fault) => fault.code === unknownFieldCode)?.path;
    if (!field) return undefined;
    const message = `The service ${service} is older than this process: ${subject} does not know the field ${field}. Upgrade it.`;
    this.#olderServices.log(subject, { message, request_id: requestId });
    return olderRelease(service, field);
  }

  override publish<Payload extends object>(type: BroadcastType<Payload>, payload: Payload): void {
    try {
      this.broadcast(type.name, encode(payload));
    } catch (error) {
      this.logger.warn(`A broadcast of ${type.name} was not sent: ${String(error)}`);
    }
  }

  protected abstract broadcast(name: string, json: string): void;

  /** Carries one request and its answer, and waits no longer than the context's deadline. */
  protected abstract request(operation: Operation, payload: string, context: CallContext): Promise<Answer>;

  /** Hands a broadcast to its listener; a broken one is dropped, whatever is wrong with it or with the listener. */
  protected deliver<Payload extends object>(
    type: BroadcastType<Payload>,
    listener: (payload: Payload) => void,
    read: () => string,
  ): void {
    try {
      listener(validateWire(type.payload, JSON.parse(read())));
    } catch (error) {
      this.logger.warn(`A broadcast of ${type.name} was dropped: ${String(error)}`);
    }
  }

  #encode({ subject }: Operation, input: object, { requestId }: CallContext): string {
    let payload: string;
    try {
      payload = encode(input);
    } catch (error) {
      this.logger.error({ message: `The input of ${subject} is not JSON: ${String(error)}`, request_id: requestId });
      throw new AppError('internal', internalMessage);
    }
    if (Buffer.byteLength(payload) <= maxRequestBytes) return payload;
    throw new AppError('payload_too_large', `The request is larger than ${maxRequestBytes / 1024} KiB.`);
  }

  #decode(operation: Operation, json: JsonText, context: CallContext): unknown {
    try {
      const reply: unknown = JSON.parse(textOf(json));
      if (typeof reply === 'object' && reply !== null) return reply;
    } catch {
      // Told below, as everything is that is no object.
    }
    throw this.#unreadable(operation, context);
  }

  #unreadable({ subject }: Operation, { requestId }: CallContext): AppError {
    this.logger.error({ message: `The response of ${subject} is not a JSON object.`, request_id: requestId });
    return unreadableAnswer();
  }
}

/** By its first sign: the JSON of an object. */
function isObject(json: JsonText): boolean {
  return typeof json === 'string' ? json.startsWith('{') : json[0]?.[0] === openingBrace;
}

const openingBrace = '{'.charCodeAt(0);
