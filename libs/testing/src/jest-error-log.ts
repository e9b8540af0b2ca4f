import 'reflect-metadata';
import { afterEach } from '@jest/globals';
import { Logger } from '@nestjs/common/services/logger.service.js';
import { specLogger, takeErrorFaults } from './error-log.js';

// Before every spec file: see `expectErrors`.
Logger.overrideLogger(specLogger);
// What the services of the file before said while they were stopped.
takeErrorFaults();
afterEach(() => {
  const faults = takeErrorFaults();
  if (faults.length > 0) throw new Error(faults.join('\n'));
});
