export { SealBroken, Sealer, UnknownSealKey } from './sealer.js';
