export { backOffMs, type BackOff } from './back-off.js';
export { WakeUp } from './wake-up.js';
