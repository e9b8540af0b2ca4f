export { randomId } from './random-id.js';
export { NoPasskeys, NoSession, RefreshFailed, SessionTab } from './session-tab.js';
export type { LogInOutcome, TabState } from './session-tab.js';
