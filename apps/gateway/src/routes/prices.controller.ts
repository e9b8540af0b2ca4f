import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { CreatePrice, ListPrices, Price, PricePage, prices } from '@atoll/contracts/billing';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Prices and usage')
@Controller('price')
export class PricesController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(PricePage, 1, 'List prices', 'Returns prices of all SKUs, or of one. Requires platform_admin.')
  listPrices(@Query() query: ListPrices, @Context() context: CallContext): Promise<PricePage> {
    return this.rpc.call(prices.list, query, context);
  }

  @Post()
  @Answers(
    201,
    Price,
    'Create a price',
    'Sets the price of a unit of a SKU per hour, from an instant on. Requires platform_admin.',
  )
  createPrice(@Body() body: CreatePrice, @Context() context: CallContext): Promise<Price> {
    return this.rpc.call(prices.create, body, context);
  }
}
