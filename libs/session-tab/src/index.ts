export { NoPasskeys, NoSession, RefreshFailed, SessionTab } from './session-tab.js';
export type { LogInOutcome, OutReason, SessionTabOptions, SessionUser, TabState } from './session-tab.js';
