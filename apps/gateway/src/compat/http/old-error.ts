import { Catch } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '@atoll/errors';
import { errorKinds } from '../../errors/error-kinds.js';
import { problemHeaders } from '../../errors/problem.js';
import { ProblemFilter } from '../../errors/problem-filter.js';
import type { UnreadForm } from '../../errors/socket-errors.js';
import { NotServed } from './not-served.js';

export class OldFieldError {
  @ApiProperty({ description: 'Path to the field (`0.email`), or name of the parameter.', example: 'page' })
  field!: string;

  @ApiProperty({
    description: 'Sentence that says what is allowed.',
    example: 'page must be a whole number from 0 to 1000000000',
  })
  message!: string;
}

/** Every error of the mount. */
export class OldError {
  @ApiProperty({ type: 'integer', description: 'HTTP status of the response.', example: 400 })
  code!: number;

  @ApiProperty({ description: 'Sentence that says what is wrong and what is allowed.', example: 'No such team.' })
  message!: string;

  @ApiProperty({
    type: OldFieldError,
    isArray: true,
    description: 'Faults of the input, one for each field: the first 100; none for other errors.',
  })
  errors!: OldFieldError[];
}

/** Clients look for these words. */
const noCapacity = 'Insufficient resources: ';

const contentType = 'application/json; charset=utf-8';

/** What came before there was a request. */
export const oldUnreadForm: UnreadForm = ({ message }, { status }) => ({
  contentType,
  body: { code: status, message, errors: [] } satisfies OldError,
});

/** As `ProblemFilter`, in the form that old clients read. */
@Catch()
export class OldErrorFilter extends ProblemFilter {
  override answer(request: FastifyRequest, reply: FastifyReply, exception: unknown): void {
    if (!(exception instanceof NotServed)) super.answer(request, reply, exception);
    else if (!reply.sent)
      reply.code(501).send({ code: 501, message: exception.message, errors: [] } satisfies OldError);
  }

  protected override send(_request: FastifyRequest, reply: FastifyReply, error: AppError): void {
    const { status } = errorKinds[error.code];
    const message = error.code === 'insufficient_capacity' ? `${noCapacity}${error.message}` : error.message;
    const errors = (error.toWire().errors ?? []).map((fault) => ({ field: fault.path, message: fault.message }));
    const body: OldError = { code: status, message, errors };
    reply
      .code(status)
      .headers({ ...problemHeaders(error), 'content-type': contentType })
      .send(JSON.stringify(body));
  }
}
