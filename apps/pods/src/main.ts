import { runService } from '@atoll/service';
import { service } from './service.js';

await runService(service);
