import { messageOf } from '@atoll/errors';
import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsIP, IsNumber, IsOptional, IsUrl, Max, Min, ValidateBy } from 'class-validator';

/** The bound of settings that have none of their own. */
export const mostOfAny = 999_999_999;

/** A setting that is a decimal number, such as `0.5`; for a whole one there is `WholeNumber` of `@atoll/contracts`. */
export function DecimalNumber({ min, max }: { min: number; max: number }): PropertyDecorator {
  const message = `$property must be a number from ${min} to ${max}`;
  return applyDecorators(
    Transform(({ value }: { value: unknown }) =>
      typeof value === 'string' && /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value,
    ),
    IsNumber({}, { message }),
    Min(min, { message }),
    Max(max, { message }),
  );
}

/**
 * A setting that `parse` accepts. The Error that it throws is the message: it names the variable and what is allowed,
 * and shows nothing of the value.
 */
export function ParsedBy(parse: (text: string) => unknown): PropertyDecorator {
  const faultOf = (value: unknown): string => {
    try {
      parse(String(value));
      return '';
    } catch (error) {
      return messageOf(error).replace(/\.$/, '');
    }
  };
  return ValidateBy({
    name: 'isParsed',
    validator: { validate: (value) => faultOf(value) === '', defaultMessage: (at) => faultOf(at?.value) },
  });
}

/**
 * A setting that is where an HTTP service is reached, with its scheme; may be left out. `port` is the usual one of such
 * a service, for the example in the message.
 */
export function HttpUrl(port: number): PropertyDecorator {
  const message = `$property must be an http or https URL, such as http://user:password@host.example.com:${port}`;
  return applyDecorators(
    IsOptional(),
    IsUrl({ require_tld: false, require_protocol: true, protocols: ['http', 'https'] }, { message }),
  );
}

/** A setting that is the address on which something listens. */
export function IpAddress(): PropertyDecorator {
  return IsIP(undefined, { message: '$property must be an IP address' });
}
