export { boardNamed, boards } from './boards.js';
export type { Board, Mechanism, SharingMode, SliceProfile } from './boards.js';
export { maskOf, place, placeAll, room } from './placement.js';
export { maxReplicas, mpsProfile, timeSliceProfile, vRamGb } from './profiles.js';
