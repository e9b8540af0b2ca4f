export { platformServices } from './platform-services.js';
export type { PlatformService } from './platform-services.js';
