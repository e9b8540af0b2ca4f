import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Dialog } from 'react-aria-components/Dialog';
import { Modal, ModalOverlay } from 'react-aria-components/Modal';
import type { User } from '../api/access.js';
import { bestMatches } from '../parts/best-matches.js';
import { ClosedByBack } from '../parts/dialogs.js';
import { Options, SearchList } from '../parts/search-list.js';
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
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      onOpenChange(!isOpen);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, [isOpen, onOpenChange]);
  return (
    <ModalOverlay className="overlay" isDismissable isOpen={isOpen} onOpenChange={onOpenChange}>
      <Modal className="modal palette">
        <Dialog aria-label="Go to a page">
          <ClosedByBack />
          <Places
            destinations={destinations}
            teams={teams}
            onChoose={(to) => {
              onOpenChange(false);
              void navigate({ to });
            }}
          />
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

interface PlacesProps extends Pick<CommandPaletteProps, 'destinations' | 'teams'> {
  onChoose: (to: string) => void;
}

function Places({ destinations, teams, onChoose }: PlacesProps) {
  const [typed, setTyped] = useState('');
  const places = new Set(destinations.map(({ to }) => to));
  const entries = [
    ...destinations.map(({ name, to, group, detail = group }) => ({ value: to, label: name, detail })),
    { value: '/profile', label: 'Your profile', detail: 'You' },
    ...teams
      .map(({ id, name }) => ({ value: `/teams/${id}`, label: `Team ${name}`, detail: 'Teams' }))
      .filter(({ value }) => !places.has(value)),
  ];
  const { shown, more } = bestMatches(entries, typed);
  return (
    <SearchList label="Page or team" placeholder="Where to?" typed={typed} onType={setTyped} more={more}>
      <Options label="Pages and teams" choices={shown} onAction={onChoose} />
    </SearchList>
  );
}
