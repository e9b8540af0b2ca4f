import { type CallContext } from '@atoll/contracts';
import { prices, type CreatePrice, type ListPrices, type Price, type PricePage } from '@atoll/contracts/billing';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PricesService } from './price.service.js';

@Controller()
export class PricesController implements Handlers<typeof prices> {
  constructor(private readonly prices: PricesService) {}

  @Handle(prices.create)
  create(input: CreatePrice, context: CallContext): Promise<Price> {
    return this.prices.create(input, context);
  }

  @Handle(prices.list)
  list(input: ListPrices, context: CallContext): Promise<PricePage> {
    return this.prices.list(input, context);
  }
}
