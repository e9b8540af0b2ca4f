export { createApiKey, digestApiKey, isWellFormedApiKey, maskApiKey } from './api-key.js';
