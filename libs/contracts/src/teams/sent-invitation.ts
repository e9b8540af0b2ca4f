import { Instant, Text } from '../fields.js';

/** A link that was sent by mail, or is shown here. */
export class SentInvitation {
  @Text({
    max: 2048,
    nullable: true,
    description: 'One-time link for the person, shown in this response only; null where it was sent by mail.',
  })
  url!: string | null;

  @Instant({ description: 'Instant at which the link expires.' })
  expires_at!: string;
}
