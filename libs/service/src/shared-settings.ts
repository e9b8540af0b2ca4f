import { WholeNumber } from '@atoll/contracts';
import { parseDatabaseUrl } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { applyDecorators } from '@nestjs/common';
import { IsOptional, MinLength } from 'class-validator';
import { Variable } from './env.js';
import { IpAddress, ParsedBy } from './setting-fields.js';

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
  return setting('DATABASE_URL', options, ParsedBy(parseDatabaseUrl));
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
  return setting(
    'ATOLL_SEAL_KEYS',
    options,
    ParsedBy((keys) => new Sealer(keys)),
  );
}

/** Default public URL of `npm start`: a host name, since passkeys do not work with IP addresses. */
export const defaultPublicUrl = 'http://localhost:3000';

/**
 * The address of the platform as people reach it: scheme, host and port, nothing behind them. Links, cookies and the
 * issuer of access tokens follow from it, never from a request; reinstall hooks answer there.
 */
export function PublicUrl(): PropertyDecorator {
  return setting('ATOLL_PUBLIC_URL', {}, ParsedBy(requirePublicUrl));
}

const publicUrlForm = /^https?:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/;

function requirePublicUrl(url: string): void {
  if (publicUrlForm.test(url) && URL.canParse(url)) return;
  throw new Error(
    'ATOLL_PUBLIC_URL must be a URL such as https://atoll.example.com, in lower case and without a path.',
  );
}

export const defaultSimulatedHost = '127.0.0.1';

/** The address on which the doors of simulated pods listen. */
export function SimulatedHost(): PropertyDecorator {
  return setting('ATOLL_SIMULATED_HOST', {}, IpAddress());
}

export const defaultHistoryRetentionDays = 90;

/**
 * Days for which transitions are kept (`machine_history`), exposed services that were deleted, and who read passwords
 * of bare-metal instances.
 */
export function HistoryRetention(): PropertyDecorator {
  return setting('ATOLL_HISTORY_RETENTION', {}, WholeNumber({ min: 1, max: 3_650, unit: 'days' }));
}
