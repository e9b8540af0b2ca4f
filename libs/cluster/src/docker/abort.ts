export { untilAborted } from '@atoll/waiting';
