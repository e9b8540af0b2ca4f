import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Controller,
  Injectable,
  Logger,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { map, type Observable } from 'rxjs';
import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { Handle } from './handle.js';
import { echo, missing, probe, startProbe, startService, type Question, type Reply } from './probe-fixture.js';
import { errorOf, inProcess, overNats, until, type Transport } from './transports-fixture.js';

/** Shows the interceptor what a handler is called with, and changes what it answers. */
@Injectable()
class Stamp implements NestInterceptor<Reply, Reply> {
  intercept(context: ExecutionContext, next: CallHandler<Reply>): Observable<Reply> {
    const { caller } = context.switchToRpc().getContext<CallContext>();
    return next.handle().pipe(map((reply) => ({ ...reply, caller })));
  }
}

@Controller()
@UseInterceptors(Stamp)
class StampedController {
  @Handle(probe.ask)
  ask(question: Question): Promise<Reply> {
    if (question.size === 0) throw new AppError('conflict', 'None left.');
    return echo(question);
  }
}

@Controller()
class SecondController {
  @Handle(probe.ask)
  ask(question: Question): Promise<Reply> {
    return echo(question);
  }
}

@Controller()
class StrangerController {
  @Handle(missing.ask)
  ask(question: Question): Promise<Reply> {
    return echo(question);
  }
}

@Controller()
class BareController {
  @MessagePattern('probe.bare')
  bare(): string {
    return 'no contract has this';
  }
}

let server: NatsServer;
beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server.stop());

describe.each([
  ['over NATS', () => overNats(server.url)],
  ['in one process', inProcess],
])('a service %s', (_name, open) => {
  let transport: Transport;
  const context = () => systemContext('spec', { deadlineMs: 60_000 });
  const ask = (question: Question = {}) => transport.rpc.call(probe.ask, question, context());

  beforeEach(() => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    transport = open();
  });
  afterEach(async () => {
    await transport.close();
    jest.restoreAllMocks();
  });

  it('does not start without its name', () => {
    expect(() => transport.strategy({ service: '' })).toThrow('A service needs a name');
  });

  it('does not start with two handlers of an operation, one of another service, or one without a contract', async () => {
    const start = (...controllers: Type[]) => startService(transport.strategy({ service: 'probe' }), ...controllers);
    await expect(start(StampedController, SecondController)).rejects.toThrow('probe.ask has two handlers.');
    await expect(start(StrangerController)).rejects.toThrow('missing.ask does not belong to the service probe.');
    await expect(start(BareController)).rejects.toThrow('The handler of probe.bare must be declared with @Handle.');
  });

  it("runs Nest's interceptors around a handler, with the context of the call", async () => {
    const service = await startService(transport.strategy({ service: 'probe' }), StampedController);
    expect(await ask({ size: 1 })).toEqual({ size: 1, caller: { kind: 'system', service: 'spec' } });
    expect((await errorOf(ask({ size: 0 }))).toWire()).toEqual({ code: 'conflict', message: 'None left.' });
    await service.close();
  });

  it('turns errors into those for callers by its own mapping, and into internal where that fails too, and logs the operation', async () => {
    const mapError = (error: unknown): AppError | undefined => {
      if (String(error).includes('broken')) throw new Error('the mapping itself');
      return String(error).includes('ECONNREFUSED') ? new AppError('unavailable', 'The database is away.') : undefined;
    };
    const service = await startProbe(transport.strategy({ service: 'probe', mapError }));
    const codes: string[] = [];
    for (const message of ['ECONNREFUSED', 'broken', 'other']) {
      service.answer = () => Promise.reject(new Error(message));
      codes.push((await errorOf(ask())).code);
    }
    expect(codes).toEqual(['unavailable', 'internal', 'internal']);
    const linesOf = (level: 'warn' | 'error') =>
      jest.mocked(Logger.prototype[level]).mock.calls.map(([line]) => (line as { message: string }).message);
    expect(linesOf('warn')).toEqual(['probe.ask failed: Error: ECONNREFUSED']);
    expect(linesOf('error')).toEqual(['probe.ask failed: Error: broken', 'probe.ask failed: Error: other']);
    await service.stop();
  });

  it('logs what an outage comes from, which callers are not told, once a minute', async () => {
    const service = await startProbe(transport.strategy({ service: 'probe' }));
    const outage = new AppError('unavailable', 'The database is unavailable.', {}, { cause: new Error('disk full') });
    service.answer = () => Promise.reject(outage);
    for (let calls = 0; calls < 3; calls += 1)
      expect((await errorOf(ask())).toWire()).toEqual({ code: 'unavailable', message: 'The database is unavailable.' });
    const warned = jest.mocked(Logger.prototype.warn).mock.calls.map(([line]) => (line as { message: string }).message);
    expect(warned).toEqual(['probe.ask failed: Error: disk full']);
    await service.stop();
  });

  it('is ready from its start until its drain', async () => {
    const strategy = transport.strategy({ service: 'probe' });
    expect(strategy.readiness()).toEqual({ ready: false, reason: 'the service takes no requests' });
    const service = await startProbe(strategy);
    expect(strategy.readiness()).toEqual({ ready: true });
    await service.stop();
    expect(strategy.readiness().ready).toBe(false);
  });

  it('finishes what is in flight when it drains, and takes nothing new', async () => {
    const strategy = transport.strategy({ service: 'probe' });
    const service = await startProbe(strategy);
    let finish: () => void = () => undefined;
    const started = new Promise<void>((begun) => {
      service.answer = (question) => {
        begun();
        return new Promise((resolve) => (finish = () => resolve({ ...question })));
      };
    });
    const inFlight = ask({ size: 1 });
    await started;
    const drained = strategy.drain();
    await until(async () => (await errorOf(ask())).code === 'unavailable');
    finish();
    expect(await inFlight).toEqual({ size: 1 });
    await drained;
    await service.stop();
  });

  it('does not wait for ever for a handler that never ends', async () => {
    const strategy = transport.strategy({ service: 'probe' });
    const service = await startProbe(strategy);
    service.answer = () => new Promise(() => undefined);
    let abandoned: Promise<AppError>;
    // A machine that is busy may take longer than the deadline to bring it there.
    do {
      abandoned = errorOf(transport.rpc.call(probe.ask, {}, systemContext('spec', { deadlineMs: 500 })));
      await Promise.race([abandoned, until(() => service.handled > 0)]);
    } while (service.handled === 0);
    await strategy.drain(10);
    expect((await abandoned).code).toBe('deadline_exceeded');
  });
});
