import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** Which pepper the keys are digested under; one row. */
@Entity('key_pepper')
@Check('key_pepper_is_only_check', 'is_only')
export class KeyPepperEntity {
  @PrimaryColumn('boolean', { default: true })
  isOnly!: boolean;

  @Column('bytea')
  fingerprint!: Buffer;
}
