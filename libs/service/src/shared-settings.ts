import { WholeNumber } from '@atoll/contracts';
import { messageOf } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { applyDecorators } from '@nestjs/common';
import { IsOptional, Matches, MinLength, ValidateBy } from 'class-validator';
import { Variable } from './env.js';
import { IpAddress } from './setting-fields.js';

/**
 * Settings that several processes read. Each is declared here, with its variable and what is allowed; a class of
 * settings includes it by a property. A default of one is beside it.
 */

interface SharedSetting {
  /** Whether a process works without it. */
  optional?: boolean;
}

const setting = (variable: string, { optional }: SharedSetting, ...rules: PropertyDecorator[]): PropertyDecorator =>
  applyDecorators(Variable(variable), ...(optional ? [IsOptional()] : []), ...rules);

/** Where PostgreSQL is reached. */
export function DatabaseUrl(options: SharedSetting = {}): PropertyDecorator {
  return setting(
    'DATABASE_URL',
    options,
    Matches(/^postgres(?:ql)?:\/\//, { message: 'DATABASE_URL must be a postgres:// URL' }),
  );
}

/** Keys the HMAC under which API keys are stored: the same in the teams service and in the gateway. */
export function KeyPepper(): PropertyDecorator {
  return setting(
    'ATOLL_KEY_PEPPER',
    {},
    MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' }),
  );
}

/**
 * Encrypts secrets in the database: what a `Sealer` takes, `id:base64,…` of 32 bytes each; the first seals. The message
 * names the faulty entry by its position, never its value.
 */
export function SealKeys(options: SharedSetting = {}): PropertyDecorator {
  const rule = ValidateBy({
    name: 'isSealKeys',
    validator: { validate: (keys) => faultOf(keys) === '', defaultMessage: (at) => faultOf(at?.value) },
  });
  return setting('ATOLL_SEAL_KEYS', options, rule);
}

/** Empty where there is none. */
function faultOf(keys: unknown): string {
  try {
    new Sealer(String(keys));
    return '';
  } catch (error) {
    return messageOf(error).replace(/\.$/, '');
  }
}

/** Default public URL of `npm start`: a host name, since passkeys do not work with IP addresses. */
export const defaultPublicUrl = 'http://localhost:3000';

/**
 * The address of the platform as people reach it: scheme, host and port, nothing behind them. Links, cookies and the
 * issuer of access tokens follow from it, never from a request; reinstall hooks answer there.
 */
export function PublicUrl(): PropertyDecorator {
  return setting(
    'ATOLL_PUBLIC_URL',
    {},
    Matches(/^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$|^https?:\/\/\[[0-9a-f:]+\](?::\d{1,5})?$/, {
      message: 'ATOLL_PUBLIC_URL must be a URL such as https://atoll.example.com, in lower case and without a path',
    }),
  );
}

export const defaultSimulatedHost = '127.0.0.1';

/** The address on which the doors of simulated pods listen. */
export function SimulatedHost(): PropertyDecorator {
  return setting('ATOLL_SIMULATED_HOST', {}, IpAddress());
}

export const defaultHistoryRetentionDays = 90;

/** Days for which transitions are kept (`machine_history`), and exposed services that were deleted. */
export function HistoryRetention(): PropertyDecorator {
  return setting('ATOLL_HISTORY_RETENTION', {}, WholeNumber({ min: 1, max: 3_650, unit: 'days' }));
}
