import { Input } from 'react-aria-components/Input';
import { Label } from 'react-aria-components/Label';
import { SearchField } from 'react-aria-components/SearchField';
import { mostFound, type Place } from './listing-place.js';

interface FindFieldProps {
  label: string;
  place: Pick<Place, 'typed' | 'find' | 'leave'>;
}

/** The field above a long listing. */
export function FindField({ label, place: { typed, find, leave } }: FindFieldProps) {
  return (
    <SearchField className="field" value={typed} onChange={find} onBlur={leave} maxLength={mostFound}>
      <Label>Find in {label}</Label>
      <Input className="input" />
    </SearchField>
  );
}
