import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { Catch, UseFilters } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import type { RpcExceptionFilter } from '@nestjs/common';
import type { CallContext, Operation } from '@atoll/contracts';
import type { Json } from './json.js';

/** What answers one operation. */
export type Handler<Input extends object, Output extends object> = (
  input: Input,
  context: CallContext,
) => Promise<Output | Json<Output>>;

/**
 * A method for each operation of a contract, by the operation's name. `implements Handlers<typeof teams>` does not
 * compile until every operation has one.
 */
export type Handlers<Contract> = {
  [Name in keyof Contract]: Contract[Name] extends Operation<infer Input, infer Output>
    ? Handler<Input, Output>
    : never;
};

/**
 * Nest's own filter would replace what was thrown by a text of its own; the server below turns errors into wire errors.
 */
@Catch()
class PassOn implements RpcExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}

const passOn = new PassOn();

/**
 * Makes a controller's method the answer to an operation. Does not compile unless the method takes the operation's
 * input and returns its output. The method is called with the validated input, an instance of the input class, and
 * the verified context of the call; what it throws reaches the caller as an AppError.
 */
export function Handle<Input extends object, Output extends object>(operation: Operation<Input, Output>) {
  return <Method extends Handler<Input, Output>>(
    target: object,
    name: string,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    MessagePattern(operation.subject, { operation })(target, name, descriptor);
    UseFilters(passOn)(target, name, descriptor);
    Payload()(target, name, 0);
    Ctx()(target, name, 1);
  };
}
