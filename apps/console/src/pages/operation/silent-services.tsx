import type { Schemas } from '../../api/client.js';

/** The services that did not answer: what is shown lacks their part. */
export function SilentServices({ services }: { services: readonly Schemas['ServiceAnswer'][] }) {
  const silent = services.filter(({ status }) => status === 'unavailable');
  if (silent.length === 0) return null;
  return (
    <div className="problem" role="alert">
      <strong>Not everything is shown</strong>
      <ul>
        {silent.map(({ service, detail }) => (
          <li key={service} className="given">
            The service {service} does not respond: {detail}
          </li>
        ))}
      </ul>
      <p>This page retries automatically.</p>
    </div>
  );
}
