import { isErrorCode, type ErrorCode } from './error-code.js';

/**
 * One fault of one field: where (`members.1.email`), a machine-readable code, and a sentence that says what is allowed.
 */
export interface FieldError {
  path: string;
  code: string;
  message: string;
}

/** Faults that a caller is told; a request with more of them is wrong throughout. */
export const mostShownFaults = 100;

export interface ErrorDetails {
  /** Each faulty field, for `invalid_input`. */
  errors?: FieldError[];
  /** Whole seconds after which trying again makes sense; becomes `Retry-After`. */
  retryAfterSeconds?: number;
  /** How to go on, for `second_factor_required`. */
  secondFactor?: SecondFactorTicket;
}

/** What the second step of a log-in takes. */
interface SecondFactorTicket {
  ticket: string;
  methods: string[];
  /** Seconds. */
  expires_in: number;
}

/** How an AppError looks on the bus. JSON only, no stack. */
export interface WireError extends ErrorDetails {
  code: ErrorCode;
  message: string;
}

/**
 * The one error that services throw on purpose. Its message is shown to callers as `detail`, so it holds
 * no secret, no SQL and no name of a host. Anything else that is thrown is a bug and shown as `internal`.
 */
export class AppError extends Error {
  override readonly name = 'AppError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** As others see it: with the first 100 of its faults. */
  toWire(): WireError {
    const { errors } = this.details;
    return {
      code: this.code,
      message: this.message,
      ...this.details,
      ...(errors && { errors: errors.slice(0, mostShownFaults) }),
    };
  }

  /** Rebuilds an error from the bus. Throws nothing: what is not a WireError becomes `internal`. */
  static fromWire(wire: unknown): AppError {
    const { code, message, errors, retryAfterSeconds, secondFactor } = (wire ?? {}) as Partial<WireError>;
    if (!isErrorCode(code) || typeof message !== 'string') {
      return new AppError('internal', 'The response of a service could not be read.');
    }
    return new AppError(code, message, {
      ...(Array.isArray(errors) && { errors }),
      ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }),
      ...(typeof secondFactor === 'object' && { secondFactor }),
    });
  }
}

export function isAppError(error: unknown): error is AppError {
  return error instanceof AppError;
}
