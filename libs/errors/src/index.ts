export { AppError, isAppError, mostShownFaults } from './app-error.js';
export type { FieldError } from './app-error.js';
export { errorCodes } from './error-code.js';
export { invalidField, invalidInput, requireSomeField } from './invalid-input.js';
export { messageOf, rootOf } from './message-of.js';
export { redactSecrets } from './redact-secrets.js';
export { isStillRunning, stillRunning } from './still-running.js';
export { tooManyRequests } from './too-many-requests.js';
export type { ErrorCode } from './error-code.js';
