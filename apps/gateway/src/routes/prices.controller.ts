import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { CreatePrice, ListPrices, Price, PricePage, prices, type CallContext } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Prices and usage')
@Controller('price')
export class PricesController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(PricePage, 1, 'Lists prices. For a platform_admin.')
  list(@Query() query: ListPrices, @Context() context: CallContext): Promise<PricePage> {
    return this.rpc.call(prices.list, query, context);
  }

  @Post()
  @Answers(201, Price, 'Sets what a unit of a SKU costs an hour, from an instant on. For a platform_admin.')
  create(@Body() body: CreatePrice, @Context() context: CallContext): Promise<Price> {
    return this.rpc.call(prices.create, body, context);
  }
}
