import { currencies, type Currency } from '@atoll/contracts/billing';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';

@Controller()
export class CurrencyController implements Handlers<typeof currencies> {
  constructor(private readonly settings: BillingSettings) {}

  @Handle(currencies.read)
  read(): Promise<Currency> {
    return Promise.resolve({ currency: this.settings.currency });
  }
}
