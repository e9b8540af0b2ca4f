import { type CallContext } from '@atoll/contracts';
import { priceDirectory, type PricesAfter, type PricesInForce } from '@atoll/contracts/billing';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PricesService } from './price.service.js';

@Controller()
export class PriceDirectoryController implements Handlers<typeof priceDirectory> {
  constructor(private readonly prices: PricesService) {}

  @Handle(priceDirectory.page)
  page(input: PricesAfter, context: CallContext): Promise<PricesInForce> {
    return this.prices.page(input, context);
  }
}
