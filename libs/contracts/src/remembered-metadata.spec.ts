import { expect, it } from '@jest/globals';
import { getMetadataStorage, MetadataStorage } from 'class-validator';
import { Text } from './fields.js';
import { rememberMetadata } from './remembered-metadata.js';

class Named {
  @Text({ max: 10 })
  name!: string;
}
class Placed extends Named {
  @Text({ max: 10 })
  place!: string;
}

it('looks up once what a class declares and inherits, and nothing of another class, or of what groups add', () => {
  const storage = new MetadataStorage();
  let asked = 0;
  storage.getTargetValidationMetadatas = (...terms) => {
    asked += 1;
    return getMetadataStorage().getTargetValidationMetadatas(...terms);
  };
  rememberMetadata(storage);
  const fieldsOf = (type: typeof Named, groups?: string[]) =>
    new Set(
      storage.getTargetValidationMetadatas(type, '', false, false, groups).map(({ propertyName }) => propertyName),
    );
  for (let time = 0; time < 3; time += 1) {
    expect(fieldsOf(Placed)).toEqual(new Set(['place', 'name']));
    expect(fieldsOf(Named)).toEqual(new Set(['name']));
  }
  expect(asked).toBe(2);
  fieldsOf(Named, ['later']);
  expect(asked).toBe(3);
  const metadata = storage.getTargetValidationMetadatas(Placed, '', false, false);
  expect(storage.groupByPropertyName(metadata)).toBe(storage.groupByPropertyName(metadata));
});
