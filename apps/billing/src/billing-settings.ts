/** What the module was registered with; injectable. */
export class BillingSettings {
  /** ISO 4217: what all prices and costs are in. */
  currency!: string;
}
