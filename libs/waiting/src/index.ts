export { backOffMs, spreadMs, type BackOff } from './back-off.js';
export { FairSemaphore, type Refused } from './fair-semaphore.js';
export { inChunks, itemsPerSlice, Pace } from './pace.js';
export { after, withPatience } from './patience.js';
export { Rounds } from './rounds.js';
export { Turns } from './turns.js';
export { ThrottledLog } from './throttled-log.js';
export { untilAborted } from './until-aborted.js';
export { WakeUp } from './wake-up.js';
