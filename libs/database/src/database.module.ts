import { Global, Logger, Module, type DynamicModule } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { ConnectionChanges } from './connection-changes.js';
import { dataSourceOptions, type DatabaseOptions } from './data-source.js';
import { DatabaseStatus } from './database-status.js';
import { ExpiredNonces, ExpiredReplies } from './expired-rows.js';
import { openDataSource } from './open-data-source.js';
import { Statements } from './statements.js';
import { Transactions } from './transactions.js';
import { Writers } from './writers.js';

/** A service's PostgreSQL: migrated at boot, and given to the whole of the service's module tree. */
@Global()
@Module({})
export class DatabaseModule {
  static forRoot(options: DatabaseOptions): DynamicModule {
    const logger = new Logger('Database');
    // The pool lets go of its connections at the end without waiting for them to close.
    const closing = { hasBegun: false, onModuleDestroy: () => (closing.hasBegun = true) };
    const onConnectionLost = (error: Error) => {
      if (!closing.hasBegun) logger.warn(`A connection was lost: ${error.message}`);
    };
    const withLog: DatabaseOptions = { onConnectionLost, ...options };
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRootAsync({
          // In one process there are several: Nest's warning of a name that is given twice is not for those who have an
          // injector each.
          name: options.schema,
          // What Nest would try again has been waited for already.
          useFactory: () => ({ ...dataSourceOptions(withLog), toRetry: () => false }),
          dataSourceFactory: () => openDataSource(withLog),
        }),
      ],
      providers: [
        { provide: DataSource, useExisting: getDataSourceToken(options.schema) },
        { provide: Symbol('closing'), useValue: closing },
        Transactions,
        Writers,
        Statements,
        ConnectionChanges,
        DatabaseStatus,
        ExpiredReplies,
        ExpiredNonces,
      ],
      exports: [DataSource, Transactions, Writers, Statements, ConnectionChanges, DatabaseStatus],
    };
  }
}
