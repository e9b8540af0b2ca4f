import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsInt, Max, Min } from 'class-validator';

/** A setting that is a number of days, from 1 to `most`. `loadEnv` puts the name of the variable into the message. */
export function Days(most: number): PropertyDecorator {
  const message = `$property must be a whole number of days from 1 to ${most}`;
  return applyDecorators(
    Type(() => Number),
    IsInt({ message }),
    Min(1, { message }),
    Max(most, { message }),
  );
}
