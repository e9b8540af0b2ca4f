import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsInt, Max, Min } from 'class-validator';

export const defaultDeadlineMs = 5_000;

/** How long a request may take in all, in milliseconds: `ATOLL_DEADLINE_MS` of the gateway and of every service. */
export function RequestDeadline(): PropertyDecorator {
  return applyDecorators(
    Type(() => Number),
    IsInt({ message: 'ATOLL_DEADLINE_MS must be whole milliseconds' }),
    Min(100),
    Max(300_000),
  );
}
