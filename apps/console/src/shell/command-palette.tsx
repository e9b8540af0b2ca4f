import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { Autocomplete, useFilter } from 'react-aria-components/Autocomplete';
import { Dialog } from 'react-aria-components/Dialog';
import { Input } from 'react-aria-components/Input';
import { Menu, MenuItem } from 'react-aria-components/Menu';
import { Modal, ModalOverlay } from 'react-aria-components/Modal';
import { SearchField } from 'react-aria-components/SearchField';
import type { User } from '../api/access.js';
import type { Destination } from './navigation.js';

interface CommandPaletteProps {
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  destinations: readonly Destination[];
  teams: User['teams'];
}

/** Every page and every team, by its name and the keyboard alone: Ctrl K or ⌘K. */
export function CommandPalette({ isOpen, onOpenChange, destinations, teams }: CommandPaletteProps) {
  const navigate = useNavigate();
  const { contains } = useFilter({ sensitivity: 'base' });
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      onOpenChange(!isOpen);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, [isOpen, onOpenChange]);
  const items = [
    ...destinations.map(({ name, to, group }) => ({ id: to, name, group })),
    { id: '/profile', name: 'Your profile', group: 'You' },
    ...teams.map(({ id, name }) => ({ id: `/teams/${id}`, name: `Team ${name}`, group: 'Teams' })),
  ];
  const known = [...new Map(items.toReversed().map((item) => [item.id, item])).values()].toReversed();
  return (
    <ModalOverlay className="overlay" isDismissable isOpen={isOpen} onOpenChange={onOpenChange}>
      <Modal className="modal palette">
        <Dialog aria-label="Go to a page">
          <Autocomplete filter={contains}>
            {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- what the palette is for */}
            <SearchField aria-label="Page or team" autoFocus>
              <Input className="input" placeholder="Where to?" />
            </SearchField>
            <Menu
              aria-label="Pages and teams"
              items={known}
              renderEmptyState={() => <p className="option quiet">There is no such page.</p>}
              onAction={(to) => {
                onOpenChange(false);
                void navigate({ to: String(to) });
              }}
            >
              {({ id, name, group }) => (
                <MenuItem id={id} className="option" textValue={name}>
                  <span className="given">{name}</span>
                  <span className="hint">{group}</span>
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
