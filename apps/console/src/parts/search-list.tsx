import type { ReactNode } from 'react';
import { Autocomplete } from 'react-aria-components/Autocomplete';
import { Input } from 'react-aria-components/Input';
import { ListBox, ListBoxItem } from 'react-aria-components/ListBox';
import { SearchField } from 'react-aria-components/SearchField';
import { quantity } from '../format/format.js';
import type { Choice } from './best-matches.js';

interface OptionsProps {
  choices: readonly Choice[];
  label?: string;
  /** What an option does, where none of them is the chosen one. */
  onAction?: (value: string) => void;
}

export function Options({ choices, label, onAction }: OptionsProps) {
  return (
    <ListBox
      {...(label !== undefined && { 'aria-label': label })}
      items={choices.map((choice) => ({ id: choice.value, ...choice }))}
      renderEmptyState={() => <p className="option quiet">Nothing matches.</p>}
      {...(onAction && { onAction: (key) => onAction(String(key)) })}
    >
      {(choice) => (
        <ListBoxItem id={choice.id} textValue={choice.label} className="option">
          <span className="given">{choice.label}</span>
          {choice.detail !== undefined && <span className="hint">{choice.detail}</span>}
        </ListBoxItem>
      )}
    </ListBox>
  );
}

interface SearchListProps {
  label: string;
  placeholder: string;
  typed: string;
  onType: (typed: string) => void;
  /** How many entries match beside those of the list. */
  more: number;
  /** The list. */
  children: ReactNode;
}

/** A list, and above it the text by which its entries are found. The focus stays in the text. */
export function SearchList({ label, placeholder, typed, onType, more, children }: SearchListProps) {
  return (
    <Autocomplete inputValue={typed} onInputChange={onType}>
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- whoever opens it is about to type */}
      <SearchField aria-label={label} autoFocus>
        {/* oxlint-disable-next-line jsx-a11y/role-has-required-aria-props -- Autocomplete adds aria-controls */}
        <Input className="input" placeholder={placeholder} role="combobox" aria-expanded="true" />
      </SearchField>
      {children}
      <p className="hint list-end" role="status">
        {more > 0 && `… and ${quantity(more)} more: type more of the name`}
      </p>
    </Autocomplete>
  );
}
