export { tearDown as default } from './set-up.js';
