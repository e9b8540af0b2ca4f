import { Controller, type INestMicroservice, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ListOf, Text, Uuid, WholeNumber, broadcast, contract, operation, type CallContext } from '@atoll/contracts';
import { Handle, type Handlers } from './handle.js';
import type { Json } from './json.js';
import type { RpcServer } from './rpc-server.js';

class Item {
  @Text({ max: 10 })
  name!: string;
}

export class Question {
  @Uuid({ optional: true })
  id?: string;

  @WholeNumber({ optional: true, min: 0, max: 1000 })
  size?: number;

  @ListOf(() => Item, { optional: true, max: 3 })
  items?: Item[];

  @Text({ optional: true, max: 2_000_000 })
  text?: string;
}

export class Reply {
  [field: string]: unknown;
}

/** The service that the specs of this lib call. */
export const probe = contract('probe', { ask: operation(Question, Reply) });
/** Nobody answers for this one. */
export const missing = contract('missing', { ask: operation(Question, Reply) });

class Ping {
  @Text({ max: 10 })
  key!: string;
}
export const pinged = broadcast('probe.pinged', Ping);

/** A running probe; what it does with a question, a spec sets. */
export interface Probe {
  answer: (question: Question, context: CallContext) => Promise<Reply | Json<Reply>>;
  /** Questions that reached it. */
  handled: number;
  stop(): Promise<void>;
}

@Controller()
class ProbeController implements Handlers<typeof probe> {
  handled = 0;
  answer: Probe['answer'] = echo;

  @Handle(probe.ask)
  ask(question: Question, context: CallContext): Promise<Reply | Json<Reply>> {
    this.handled += 1;
    return this.answer(question, context);
  }
}

export function echo(question: Question): Promise<Reply> {
  return Promise.resolve({ ...question });
}

/** Starts a service with these controllers behind a strategy. */
export async function startService(strategy: RpcServer, ...controllers: Type[]): Promise<INestMicroservice> {
  class ServiceModule {}
  const application = await NestFactory.createMicroservice(
    { module: ServiceModule, controllers },
    { strategy, abortOnError: false },
  );
  await application.listen();
  return application;
}

export async function startProbe(strategy: RpcServer): Promise<Probe> {
  const application = await startService(strategy, ProbeController);
  return Object.assign(application.get(ProbeController), { stop: () => application.close() });
}
