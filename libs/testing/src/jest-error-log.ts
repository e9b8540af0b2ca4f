import 'reflect-metadata';
import { afterEach } from '@jest/globals';
import { Logger } from '@nestjs/common/services/logger.service.js';
import { specLogger, takeErrorFaults } from './error-log.js';

// Before every spec file: see `expectErrors`.
Logger.overrideLogger(specLogger);
afterEach(() => {
  const faults = takeErrorFaults();
  if (faults.length > 0) throw new Error(faults.join('\n'));
});
