import { platformServices } from '@atoll/service-names';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { answerOf, api, idempotencyKey } from '../../api/client.js';
import { useUser } from '../../api/user-context.js';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Act, DialogEnd, ModalBox } from '../../parts/dialogs.js';
import { Ask } from '../../parts/form-dialog.js';
import { Chooser } from '../../parts/fields.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { deadLettersQuery, type DeadLetter } from './operation-queries.js';
import { SilentServices } from './silent-services.js';

const invalidates = ['dead-letters'];

const services: { value: DeadLetter['service'] | 'all'; label: string }[] = [
  { value: 'all', label: 'All services' },
  ...platformServices.map((name) => ({ value: name, label: name })),
];

export function DeadLettersPage() {
  const { cursor, service } = useSearch({ from: '/in/operator/dead-letters' });
  const navigate = useNavigate({ from: '/operator/dead-letters' });
  const { timezone } = useUser();
  const letters = useQuery(deadLettersQuery(cursor, service));
  const filter = service === undefined ? {} : { service };
  return (
    <Page
      title="Dead letters"
      lead={`Events that a service could not take. Mend the cause, then replay them. Times are in ${timezone}.`}
      actions={
        <Chooser
          label="Service"
          isLabelHidden
          value={service ?? 'all'}
          choices={services}
          onChange={(next) => void navigate({ search: next === 'all' ? {} : { service: next } })}
        />
      }
    >
      <Loaded query={letters} height={320}>
        {({ data, next_cursor, services: answers }) => (
          <div className="stack">
            <SilentServices services={answers} />
            <Table
              label="Dead letters"
              rows={data}
              keyOf={({ dead_letter_id }) => dead_letter_id}
              empty={
                <Empty title={cursor === undefined ? 'There is no dead letter' : 'There is no older dead letter'}>
                  All events of the platform were handled.
                </Empty>
              }
              columns={columns(timezone)}
            />
            {(cursor !== undefined || next_cursor !== null) && (
              <nav className="pager" aria-label="Pages">
                {cursor !== undefined && (
                  <Link className="button" data-small="true" to="/operator/dead-letters" search={filter}>
                    Latest
                  </Link>
                )}
                {next_cursor !== null && (
                  <Link
                    className="button"
                    data-small="true"
                    to="/operator/dead-letters"
                    search={{ ...filter, cursor: next_cursor }}
                  >
                    Older
                  </Link>
                )}
              </nav>
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function columns(zone: string): Column<DeadLetter>[] {
  return [
    {
      title: 'Event',
      isHead: true,
      cell: ({ event_name, occurred_at }) => (
        <span className="given">
          {event_name}
          <br />
          <span className="hint">of {instant(occurred_at, zone)}</span>
        </span>
      ),
    },
    {
      title: 'Not taken by',
      cell: ({ service, consumer }) => (
        <span className="given">
          {service}
          <br />
          <span className="hint">{consumer}</span>
        </span>
      ),
    },
    { title: 'Reason', cell: ({ error }) => <span className="given wide">{error}</span> },
    { title: 'Tries', isNumber: true, cell: ({ tries }) => tries },
    { title: 'Last failed', isWhole: true, cell: ({ last_failed_at }) => instant(last_failed_at, zone) },
    { title: '', cell: (letter) => <LetterActions letter={letter} /> },
  ];
}

function LetterActions({ letter }: { letter: DeadLetter }) {
  const { service, dead_letter_id, event_name, consumer } = letter;
  const path = { service, dead_letter_id };
  return (
    <div className="actions">
      <ModalBox title={event_name} trigger={<Button isSmall>Show</Button>}>
        <LetterContent letter={letter} />
      </ModalBox>
      {letter.replay_requested_at === null ? (
        <Act
          label="Replay"
          kind="primary"
          action={() =>
            answerOf(
              api.POST('/api/operator/dead-letters/{service}/{dead_letter_id}/replay', {
                params: { path, header: idempotencyKey() },
              }),
            )
          }
          invalidates={invalidates}
          done={`${event_name} is tried once more.`}
        />
      ) : (
        <Chip state="replaying" as="pending" />
      )}
      <Ask
        title={`Drop ${event_name}`}
        question={
          <p className="given">
            {consumer} of {service} will never handle this event; its effect has to be repaired by hand.
          </p>
        }
        submit="Drop"
        action={() =>
          answerOf(api.DELETE('/api/operator/dead-letters/{service}/{dead_letter_id}', { params: { path } }))
        }
        invalidates={invalidates}
        done={`${event_name} was dropped.`}
      />
    </div>
  );
}

function LetterContent({ letter }: { letter: DeadLetter }) {
  return (
    <>
      <dl className="facts">
        <dt>Event</dt>
        <dd>
          <code className="given">{letter.event_id}</code>
        </dd>
        <dt>Request</dt>
        <dd>
          <code className="given">{letter.request_id ?? '–'}</code>
        </dd>
        <dt>Reason</dt>
        <dd className="given">{letter.error}</dd>
      </dl>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <pre className="payload" tabIndex={0} role="region" aria-label="Payload">
        {letter.payload}
      </pre>
      <DialogEnd label="Close" />
    </>
  );
}
