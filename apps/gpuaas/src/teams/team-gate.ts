export { TeamGate } from '@atoll/team-directory';
