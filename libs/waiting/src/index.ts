export { backOffMs, type BackOff } from './back-off.js';
export { Lanes, type Refused } from './lanes.js';
export { inChunks, itemsPerSlice, Pace } from './pace.js';
export { Removals } from './removals.js';
export { Rounds } from './rounds.js';
export { Turns } from './turns.js';
export { WakeUp } from './wake-up.js';
